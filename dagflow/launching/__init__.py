"""Loading an application, building it and starting a run."""
