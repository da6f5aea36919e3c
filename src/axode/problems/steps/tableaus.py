"""Coefficients of explicit Runge-Kutta methods: stages, weights, error estimate, interpolant.

E. Hairer, S. P. Norsett, G. Wanner, *Solving Ordinary Differential Equations I*, section II.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

Row = tuple[Fraction, ...]


@dataclass(frozen=True)
class ButcherTableau:
    """An explicit Runge-Kutta method.

    Stage i has the rate k_i = f(x + h sum_j a_ij k_j, t + c_i h), a step ends at
    x + h sum_i b_i k_i.

    Attributes:
        name: Name of the method.
        stages: a_ij, one row per stage.
        weights: b_i.
        error: Weights of the error estimate, b_i less those of the embedded method; empty for a
            method with fixed steps.
        dense: Weights b_i(s) of the interpolant as polynomials in the part s of the step: per
            stage, the coefficients of s, s^2, ...
        coarse: Weights of an estimate of lower order, against which the first one is weighed.
        inner: Further stages, of which the interpolant alone needs the rates.
        error_order: Power of the step with which the estimate grows.
        stability: Largest product of step and slope of a decaying motion.
    """

    name: str
    stages: tuple[Row, ...]
    weights: Row
    error: Row = ()
    dense: tuple[Row, ...] = ()
    coarse: Row = ()
    inner: tuple[Row, ...] = ()
    error_order: int = 5
    stability: float = 3.25

    @property
    def rates(self) -> tuple[str, ...]:
        """Names of the rates of all stages, those inside included."""
        return tuple(f"k{i + 1}" for i in range(len(self.stages) + len(self.inner)))

    @property
    def nodes(self) -> Row:
        """c_i, the times of all stages as parts of a step."""
        return tuple(sum(row, Fraction()) for row in (*self.stages, *self.inner))

    @property
    def used_stages(self) -> int:
        """Number of stages that the end of a step depends on."""
        return max(i for i, weight in enumerate(self.weights) if weight) + 1

    @property
    def first_same_as_last(self) -> bool:
        """True if the last stage is the end of the step, so that its rate begins the next one."""
        return (*self.stages[-1], Fraction()) == self.weights


def _rows(text: str) -> tuple[Row, ...]:
    """Read rows of fractions or decimals, one line each or up to ";"; "-" is an empty row."""
    rows = text.strip().rstrip(";").split(";") if ";" in text else text.strip().splitlines()
    return tuple(tuple(map(Fraction, row.split())) if row.strip() != "-" else () for row in rows)


def _nested(weights: Row, rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Expand Hairer's interpolant of order 7 into weights of the stages by powers of s.

    It is s (F0 + (1-s) (F1 + s (F2 + (1-s) (F3 + s (F4 + (1-s) (F5 + s F6)))))) with the rise
    F0 = h sum b_i k_i of the step, F1 = h k_1 - F0, F2 = F0 - F1 - h k at its end, and F3 to F6
    from `rows`, of which the first has the rate at the end at the place behind the weights.
    """
    count, last = len(rows[0]), len(weights) - 1
    unit = [[Fraction(i == j) for i in range(count)] for j in (0, last)]
    rise = [*weights, *[Fraction()] * (count - len(weights))]
    tilt = [a - b for a, b in zip(unit[0], rise, strict=True)]
    bend = [a - b - c for a, b, c in zip(rise, tilt, unit[1], strict=True)]
    dense = []
    for column in zip(rise, tilt, bend, *rows, strict=True):
        powers: list[Fraction] = []
        for level, value in reversed(list(enumerate(column))):
            raised = [value + (powers[0] if powers else 0), *powers[1:]]
            shifted = [Fraction(), *raised]  # times s
            if level % 2:  # times 1 - s
                shifted = [a - b for a, b in zip([*raised, Fraction()], shifted, strict=True)]
            powers = shifted
        dense.append(tuple(powers[1:]))
    return tuple(dense)


# The interpolant of order 3 is M. Zennaro's, Math. Comput. 46, 1986: integrals of it have order 4.
RK4 = ButcherTableau(
    "rk4",
    stages=_rows("""
        -
        1/2
        0 1/2
        0 0 1
    """),
    weights=_rows("1/6 1/3 1/3 1/6")[0],
    dense=_rows("""
        1 -3/2 2/3
        0 1 -2/3
        0 1 -2/3
        0 -1/2 2/3
    """),
)

# J. R. Dormand and P. J. Prince, "A family of embedded Runge-Kutta formulae", J. Comput. Appl.
# Math. 6, 1980; the interpolant of order 4 is L. F. Shampine's, Math. Comput. 46, 1986.
DOPRI5 = ButcherTableau(
    "dopri5",
    stages=_rows("""
        -
        1/5
        3/40 9/40
        44/45 -56/15 32/9
        19372/6561 -25360/2187 64448/6561 -212/729
        9017/3168 -355/33 46732/5247 49/176 -5103/18656
        35/384 0 500/1113 125/192 -2187/6784 11/84
    """),
    weights=_rows("35/384 0 500/1113 125/192 -2187/6784 11/84 0")[0],
    error=_rows("71/57600 0 -71/16695 71/1920 -17253/339200 22/525 -1/40")[0],
    dense=_rows("""
        1 -8048581381/2820520608 8663915743/2820520608 -12715105075/11282082432
        0 0 0 0
        0 131558114200/32700410799 -68118460800/10900136933 87487479700/32700410799
        0 -1754552775/470086768 14199869525/1410260304 -10690763975/1880347072
        0 127303824393/49829197408 -318862633887/49829197408 701980252875/199316789632
        0 -282668133/205662961 2019193451/616988883 -1453857185/822651844
        0 40617522/29380423 -110615467/29380423 69997945/29380423
    """),
)

_DOP853_STAGES = _rows("""
        -;
        0.0526001519587677318785587544488;
        0.0197250569845378994544595329183 0.0591751709536136983633785987549;
        0.0295875854768068491816892993775 0 0.0887627564304205475450678981324;
        0.241365134159266685502369798665 0 -0.884549479328286085344864962717
            0.924834003261792003115737966543;
        0.037037037037037037037037037037 0 0 0.170828608729473871279604482173
            0.125467687566822425016691814123;
        0.037109375 0 0 0.170252211019544039314978060272 0.0602165389804559606850219397283
            -0.017578125;
        0.0370920001185047927108779319836 0 0 0.170383925712239993810214054705
            0.107262030446373284651809199168 -0.0153194377486244017527936158236
            0.00827378916381402288758473766002;
        0.624110958716075717114429577812 0 0 -3.36089262944694129406857109825
            -0.868219346841726006818189891453 27.5920996994467083049415600797
            20.1540675504778934086186788979 -43.4898841810699588477366255144;
        0.477662536438264365890433908527 0 0 -2.48811461997166764192642586468
            -0.590290826836842996371446475743 21.2300514481811942347288949897
            15.2792336328824235832596922938 -33.2882109689848629194453265587
            -0.0203312017085086261358222928593;
        -0.93714243008598732571704021658 0 0 5.18637242884406370830023853209
            1.09143734899672957818500254654 -8.14978701074692612513997267357
            -18.5200656599969598641566180701 22.7394870993505042818970056734
            2.49360555267965238987089396762 -3.0467644718982195003823669022;
        2.27331014751653820792359768449 0 0 -10.5344954667372501984066689879
            -2.00087205822486249909675718444 -17.9589318631187989172765950534
            27.9488845294199600508499808837 -2.85899827713502369474065508674
            -8.87285693353062954433549289258 12.3605671757943030647266201528
            0.643392746015763530355970484046;
        0.0542937341165687622380535766363 0 0 0 0 4.45031289275240888144113950566
            1.89151789931450038304281599044 -5.8012039600105847814672114227
            0.31116436695781989440891606237 -0.152160949662516078556178806805
            0.201365400804030348374776537501 0.0447106157277725905176885569043
""")

# Of order 8, by P. J. Prince and J. R. Dormand and by E. Hairer; the coefficients, the estimates of
# orders 5 and 3 and the interpolant are those of dop853, section II.5, II.6 and II.10.
DOP853 = ButcherTableau(
    "dop853",
    stages=_DOP853_STAGES,
    weights=(*_DOP853_STAGES[-1], Fraction()),
    error=_rows("""
        0.01312004499419488073250102996 0 0 0 0 -1.225156446376204440720569753
            -0.4957589496572501915214079952 1.664377182454986536961530415
            -0.350328848749973681688648729 0.3341791187130174790297318841
            0.08192320648511571246570742613 -0.02235530786388629525884427845 0;
    """)[0],
    # the weights less those of order 3
    coarse=tuple(
        b - c
        for b, c in zip(
            (*_DOP853_STAGES[-1], Fraction()),
            _rows("""
        0.244094488188976377952755905512 0 0 0 0 0 0 0 0.733846688281611857341361741547 0 0
            0.0220588235294117647058823529412 0;
            """)[0],
            strict=True,
        )
    ),
    inner=_rows("""
        0.0561675022830479523392909219681 0 0 0 0 0 0.253500210216624811088794765333
            -0.246239037470802489917441475441 -0.124191423263816360469010140626
            0.15329179827876569731206322685 0.00820105229563468988491666602057
            0.00756789766054569976138603589584 -0.008298;
        0.0318346481635021405060768473261 0 0 0 0 0.0283009096723667755288322961402
            0.0535419883074385676223797384372 -0.0549237485713909884646569340306 0 0
            -0.000108347328697249322858509316994 0.000382571090835658412954920192323
            -0.000340465008687404560802977114492 0.141312443674632500278074618366;
        -0.428896301583791923408573538692 0 0 0 0 -4.69762141536116384314449447206
            7.68342119606259904184240953878 4.06898981839711007970213554331
            0.356727187455281109270669543021 0 0 0 -0.00139902416515901462129418009734
            2.9475147891527723389556272149 -9.15095847217987001081870187138
    """),
    dense=_nested(
        (*_DOP853_STAGES[-1], Fraction()),
        _rows("""
        -8.4289382761090128651353491142 0 0 0 0 0.5667149535193777696253178359
            -3.0689499459498916912797304727 2.384667656512069828772814968
            2.1170345824450282767155149946 -0.8713915837779729920678990749
            2.240437430260788275854177165 0.6315787787694688181557024929
            -0.0889903364513333108206981174 18.148505520854727256656404962
            -9.1946323924783554000451984436 -4.4360363875948939664310572;
        10.427508642579134603413151009 0 0 0 0 242.28349177525818288430175319
            165.20045171727028198505394887 -374.54675472269020279518312152
            -22.113666853125306036270938578 7.7334326684722638389603898808
            -30.674084731089398182061213626 -9.3321305264302278729567221706
            15.697238121770843886131091075 -31.139403219565177677282850411
            -9.3529243588444783865713862664 35.81684148639408375246589854;
        19.985053242002433820987653617 0 0 0 0 -387.03730874935176555105901742
            -189.17813819516756882830838328 527.80815920542364900561016686
            -11.573902539959630126141871134 6.8812326946963000169666922661
            -1.000605096691083840318386098 0.7777137798053443209286926574
            -2.7782057523535084065932004339 -60.196695231264120758267380846
            84.320405506677161018159903784 11.99229113618278932803513003;
        -25.693933462703749003312586129 0 0 0 0 -154.18974869023643374053993627
            -231.52937917604549567536039109 357.6391179106141237828534991
            93.405324183624310003907691704 -37.458323136451633156875139351
            104.09964950896230045147246184 29.840293426660503123344363579
            -43.533456590011143754432175058 96.3245539591882829483949506
            -39.177261675615439165231486172 -149.72683625798562581422125276
        """),
    ),
    error_order=8,
    stability=6.1,
)

EXPLICIT_METHODS = {method.name: method for method in (RK4, DOPRI5, DOP853)}
