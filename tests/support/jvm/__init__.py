"""The Java archive, its client and ArchiveTool, and other programs on the JVM."""
