import io.atomix.raft.cluster.RaftMember;
import io.atomix.raft.storage.log.PersistedRaftRecord;
import io.atomix.raft.storage.log.RaftLog;
import io.atomix.raft.storage.log.entry.ApplicationEntry;
import io.atomix.raft.storage.log.entry.ConfigurationEntry;
import io.camunda.zeebe.journal.Journal;
import io.camunda.zeebe.journal.file.SegmentedJournal;
import java.io.File;
import java.util.Collection;
import java.util.List;
import org.agrona.DirectBuffer;

/** Release 1.0 of Zeebe. */
final class Release {
  static RaftLog log(final String name, final File folder, final int segmentSize) {
    return RaftLog.builder()
        .withName(name)
        .withDirectory(folder)
        .withMaxSegmentSize(segmentSize)
        .withFreeDiskSpace(1)
        .withJournalIndexDensity(5)
        .build();
  }

  static Journal journal(
      final String name, final File folder, final int segmentSize, final long flushedIndex) {
    return SegmentedJournal.builder()
        .withName(name)
        .withDirectory(folder)
        .withMaxSegmentSize(segmentSize)
        .withFreeDiskSpace(1)
        .withLastWrittenIndex(flushedIndex)
        .build();
  }

  static ApplicationEntry application(final long lowest, final long highest, final DirectBuffer data) {
    return new ApplicationEntry(lowest, highest, data);
  }

  static DirectBuffer data(final ApplicationEntry entry) {
    return entry.data();
  }

  static ConfigurationEntry configuration(
      final long timestamp, final List<RaftMember> members, final List<RaftMember> oldMembers) {
    return new ConfigurationEntry(timestamp, members);
  }

  static Collection<RaftMember> members(final ConfigurationEntry entry) {
    return entry.members();
  }

  static Collection<RaftMember> oldMembers(final ConfigurationEntry entry) {
    return List.of();
  }

  static void replicate(
      final RaftLog log,
      final long term,
      final long index,
      final long asqn,
      final long checksum,
      final byte[] entry) {
    log.append(new PersistedRaftRecord(term, index, asqn, checksum, entry));
  }
}
