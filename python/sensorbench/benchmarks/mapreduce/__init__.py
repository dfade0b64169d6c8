"""The MapReduce job of the study over whole databases: carried out on Spark and by databases themselves, and summed up."""
