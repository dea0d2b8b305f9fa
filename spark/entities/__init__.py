"""The tables of entity stores, computed from recordings with Spark."""

from aerotape.spark.entities.actions import read_actions as read_actions
from aerotape.spark.entities.actions import with_partitions as with_partitions
from aerotape.spark.entities.tables import EntityTables as EntityTables
from aerotape.spark.entities.tables import read_tables as read_tables
from aerotape.spark.entities.tables import write_tables as write_tables
