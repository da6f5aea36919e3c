"""Code for particular publications: acceptance cases, reproduced figures, other derivations."""
