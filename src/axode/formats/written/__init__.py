"""What the writers of URDF, MJCF and SDF share: a mechanism as a tree of links and joints."""
