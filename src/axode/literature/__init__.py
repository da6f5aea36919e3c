"""What serves particular publications: acceptance cases, reproduced figures, rival derivations."""
