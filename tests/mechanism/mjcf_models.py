"""Small models in MJCF, one for each thing that such files can hold."""

ARM = """<mujoco model="arm">
  <compiler angle="degree"/>
  <option gravity="0.3 0 -9.7"/>
  <default>
    <joint damping="0.4" armature="0.02"/>
    <default class="light"><geom density="300"/></default>
  </default>
  <worldbody>
    <body name="upper" pos="0 0 1" euler="0 30 0">
      <joint name="shoulder" axis="0 1 0" pos="0 0 0.05"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.04"/>
      <body name="lower" pos="0.4 0 0" quat="0.70711 0.7071 0 0">
        <joint name="elbow" axis="1 2 0" stiffness="3" springref="20" ref="10"/>
        <geom class="light" type="box" size="0.2 0.03 0.02" pos="0.2 0 0" euler="10 0 5"/>
        <body name="tool" pos="0.4 0 0">
          <geom type="sphere" size="0.05" mass="0.3"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="lift" joint="shoulder" gear="20" ctrllimited="true" ctrlrange="-2 2"/>
    <motor name="bend" joint="elbow"/>
  </actuator>
</mujoco>
"""

SEVERAL_JOINTS = """<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="car" pos="0 0 0.2">
      <joint name="x" type="slide" axis="1 0 0" ref="0.3"/>
      <joint name="z" type="slide" axis="0 0 1" damping="2" stiffness="5" springref="0.1"/>
      <joint name="pitch" axis="0 1 0" pos="0.1 0 -0.2" ref="0.2"/>
      <inertial mass="2" pos="0.01 0.02 0.03" fullinertia="0.3 0.4 0.5 0.01 0.02 -0.03"/>
      <body pos="0.3 0.1 0" euler="10 20 30">
        <joint type="hinge" axis="0.6 0 0.8" pos="0 0.1 0"/>
        <joint type="hinge" axis="0 1 0" pos="0.1 0 0"/>
        <joint type="slide" axis="0 0 1"/>
        <geom type="cylinder" size="0.1 0.2" mass="1.5"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""

FLYING = """<mujoco model="flying">
  <worldbody>
    <body name="hull" pos="0 0 2" euler="0 0 45">
      <joint name="fly" type="free" damping="0.7"/>
      <geom type="box" size="0.3 0.2 0.1" mass="3"/>
      <geom type="sphere" size="0.1" pos="0.2 0.1 0.1" mass="1"/>
      <body name="arm" pos="0.3 0 0" euler="0 40 0">
        <joint name="hip" type="ball" pos="0 0 0.05" damping="0.3" armature="0.05"/>
        <geom type="ellipsoid" size="0.05 0.1 0.3" pos="0 0 -0.3" mass="0.8"/>
        <body name="hand" pos="0 0 -0.6">
          <joint name="wrist" axis="1 0 0"/>
          <geom type="box" size="0.1 0.05 0.05" pos="0 0 -0.05" mass="0.2"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="turn" joint="hip" gear="0 3 0"/></actuator>
</mujoco>
"""

FRAMES_AND_COPIES = """<mujoco model="copies">
  <compiler eulerseq="zyx" boundmass="0.5"/>
  <worldbody>
    <frame pos="0 0 1" euler="30 0 0">
      <replicate count="3" offset="0.5 0 0" euler="0 0 20">
        <body name="leg" childclass="side">
          <joint name="swing" axis="0 1 0"/>
          <geom size="0.1 0.2" type="capsule"/>
          <site name="tip" pos="0 0 -0.2"/>
        </body>
      </replicate>
    </frame>
  </worldbody>
  <default><default class="side"><joint damping="0.1" stiffness="1"/></default></default>
</mujoco>
"""

FOUR_BAR = """<mujoco model="four_bar">
  <worldbody>
    <body name="crank">
      <joint name="crank" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.2" size="0.02" mass="1"/>
      <body name="coupler" pos="0 0 0.2">
        <joint name="coupler" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.5 0 0.1" size="0.02" mass="2"/>
      </body>
    </body>
    <body name="rocker" pos="0.5 0 0">
      <joint name="rocker" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.02" mass="1.5"/>
    </body>
  </worldbody>
  <equality><connect name="pin" body1="coupler" body2="rocker" anchor="0.5 0 0.1"/></equality>
  <actuator><motor name="crank" joint="crank" gear="5"/></actuator>
</mujoco>
"""

WELDED = """<mujoco model="welded">
  <worldbody>
    <body name="a" pos="0 0 1">
      <joint name="a1" type="ball"/>
      <joint name="a2" type="slide" axis="0 0 1"/>
      <geom type="box" size="0.1 0.2 0.3" mass="1"/>
      <site name="end" pos="0.1 0 0.3" euler="10 0 0"/>
    </body>
    <body name="b" pos="0.5 0 1" euler="0 0 30">
      <freejoint name="b"/>
      <geom type="box" size="0.2 0.2 0.3" mass="2"/>
      <site name="start" pos="-0.2 0 0.1" euler="0 20 0"/>
    </body>
    <body name="c" pos="1 0 1">
      <joint name="c1" axis="1 0 0"/>
      <joint name="c2" axis="0 1 0"/>
      <joint name="c3" axis="0 0 1"/>
      <geom type="sphere" size="0.2" pos="0 0.1 0" mass="1"/>
      <site name="middle" pos="0 0.1 0"/>
    </body>
  </worldbody>
  <equality>
    <weld body1="a" body2="b"/>
    <connect site1="start" site2="middle"/>
  </equality>
</mujoco>
"""

ANCHORED = """<mujoco model="anchored">
  <worldbody>
    <body name="a" pos="0 0 1">
      <joint name="a" type="ball"/>
      <joint name="a1" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0" mass="1"/>
    </body>
    <body name="b" pos="0.5 0 1" euler="0 0 30">
      <freejoint name="b"/>
      <geom type="box" size="0.2 0.2 0.3" mass="2"/>
    </body>
    <body name="c" pos="-0.5 0 1">
      <freejoint name="c"/>
      <geom type="box" size="0.2 0.1 0.3" mass="2"/>
    </body>
  </worldbody>
  <equality>
    <connect body1="b" anchor="0.1 0.2 0.3"/>
    <weld body1="b" body2="a" anchor="0.05 0 0.1" relpose="-0.4 0.2 0.1 0.9 0.3 0.1 0.2"/>
    <weld body1="a" body2="c" torquescale="0"/>
  </equality>
</mujoco>
"""

GRIPPER = """<mujoco model="gripper">
  <option><flag gravity="disable"/></option>
  <worldbody>
    <body name="left" pos="0 0.1 0">
      <joint name="left" type="slide" axis="0 1 0" ref="0.02"/>
      <geom size="0.02" mass="0.2"/>
    </body>
    <body name="right" pos="0 -0.1 0">
      <joint name="right" type="slide" axis="0 -1 0"/>
      <geom size="0.02" mass="0.3"/>
    </body>
    <body name="thumb" pos="0.1 0 0">
      <joint name="thumb" axis="0 0 1" damping="0.1"/>
      <geom size="0.02" pos="0.1 0 0" mass="0.1"/>
    </body>
    <body name="nail" pos="0.2 0 0">
      <joint name="nail" axis="0 0 1"/>
      <geom size="0.02" pos="0.1 0 0" mass="0.1"/>
    </body>
  </worldbody>
  <equality>
    <joint name="same" joint1="left" joint2="right" polycoef="0.01 1.5 0 0 0"/>
    <joint name="held" joint1="nail" polycoef="0.3"/>
  </equality>
</mujoco>
"""

TENDONS = """<mujoco model="tendons">
  <worldbody>
    <body name="one" pos="0 0 1">
      <joint name="one" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.4"/>
      <site name="near" pos="0.1 0 0.02"/>
      <body name="two" pos="0.3 0 0">
        <joint name="two" axis="0 1 0" ref="0.3"/>
        <geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.02" mass="0.3"/>
        <body name="three" pos="0.2 0 0">
          <joint name="three" axis="0 1 0" armature="0.01"/>
          <geom type="capsule" fromto="0 0 0 0.1 0 0" size="0.02" mass="0.2"/>
          <site name="far" pos="0.1 0 0.02"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="pull" stiffness="8" damping="0.5" springlength="0.4">
      <joint joint="one" coef="0.7"/><joint joint="two" coef="-0.4"/>
    </fixed>
    <spatial name="string" stiffness="30" damping="0.2" springlength="0.25">
      <site site="near"/><site site="far"/>
    </spatial>
  </tendon>
  <actuator><motor name="winch" tendon="pull" gear="2"/><motor name="tip" joint="three"/></actuator>
</mujoco>
"""

COUPLED_TENDONS = """<mujoco model="coupled">
  <worldbody>
    <body name="p"><joint name="p" axis="0 1 0" ref="0.1"/><geom size="0.1" pos="0.2 0 0"/></body>
    <body name="q"><joint name="q" axis="0 1 0"/><geom size="0.1" pos="0.3 0 0"/></body>
    <body name="r"><joint name="r" axis="0 1 0"/><geom size="0.1" pos="0.1 0 0"/></body>
  </worldbody>
  <tendon>
    <fixed name="first"><joint joint="p" coef="2"/><joint joint="q" coef="1"/></fixed>
    <fixed name="second"><joint joint="r" coef="0.5"/></fixed>
  </tendon>
  <equality><tendon tendon1="first" tendon2="second" polycoef="0.2 3 0 0 0"/></equality>
</mujoco>
"""

CART = """<mujoco model="cart">
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body name="base" pos="0 0 0.1">
      <freejoint name="base"/>
      <geom type="box" size="0.2 0.15 0.05" mass="4"/>
      <body name="left" pos="0 0.2 0">
        <joint name="left" axis="0 1 0"/>
        <geom type="cylinder" size="0.1 0.02" euler="90 0 0" mass="0.5"/>
      </body>
      <body name="right" pos="0 -0.2 0">
        <joint name="right" axis="0 1 0"/>
        <geom type="ellipsoid" size="0.1 0.02 0.1" mass="0.5"/>
      </body>
      <body name="ball" pos="0.15 0 -0.07">
        <joint name="ball" type="ball"/>
        <geom type="sphere" size="0.03" mass="0.1"/>
      </body>
      <body name="radar" pos="0 0 0.2">
        <joint name="radar" axis="0 0 1"/>
        <geom type="cylinder" size="0.05 0.02" mass="0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="left" joint="left"/><motor name="right" joint="right"/>
  </actuator>
</mujoco>
"""

TREES = {
    "arm": ARM,
    "several_joints": SEVERAL_JOINTS,
    "flying": FLYING,
    "copies": FRAMES_AND_COPIES,
    "cart": CART,
}
LOOPS = {
    "four_bar": FOUR_BAR,
    "welded": WELDED,
    "anchored": ANCHORED,
    "gripper": GRIPPER,
    "coupled_tendons": COUPLED_TENDONS,
}
