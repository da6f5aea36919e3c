"""Logs of runs for other programs: MCAP files with messages of ROS 2, recordings of Rerun."""
