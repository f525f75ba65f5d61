"""What users test their operators with."""
