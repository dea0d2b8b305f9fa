import io.atomix.raft.cluster.RaftMember;
import io.atomix.raft.storage.RaftStorage;
import io.atomix.raft.storage.log.PersistedRaftRecord;
import io.atomix.raft.storage.log.RaftLog;
import io.atomix.raft.storage.log.entry.ApplicationEntry;
import io.atomix.raft.storage.log.entry.ConfigurationEntry;
import io.atomix.raft.storage.system.MetaStore;
import io.camunda.zeebe.journal.Journal;
import io.camunda.zeebe.journal.file.SegmentedJournal;
import io.camunda.zeebe.dispatcher.BlockPeek;
import io.camunda.zeebe.dispatcher.Dispatcher;
import io.camunda.zeebe.dispatcher.Dispatchers;
import io.camunda.zeebe.dispatcher.Subscription;
import io.camunda.zeebe.logstreams.impl.log.LogStreamBatchWriterImpl;
import io.camunda.zeebe.logstreams.log.LogStreamBatchWriter;
import io.camunda.zeebe.util.sched.ActorScheduler;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.List;
import org.agrona.DirectBuffer;

/** Release 1.0 of Zeebe. */
final class Release {
  private static MetaStore metaStore;

  static RaftLog log(final String name, final File folder, final int segmentSize)
      throws IOException {
    final RaftStorage.Builder storage = RaftStorage.builder();
    metaStore = storage.withDirectory(folder).withPrefix(name).build().openMetaStore();
    return RaftLog.builder()
        .withName(name)
        .withDirectory(folder)
        .withMaxSegmentSize(segmentSize)
        .withFreeDiskSpace(1)
        .withJournalIndexDensity(5)
        .build();
  }

  /** Flush, and store the last index, as a leader does when all records are committed. */
  static void commit(final RaftLog log) {
    log.flush();
    metaStore.storeLastWrittenIndex(log.getLastIndex());
  }

  static void close(final RaftLog log) {
    log.close();
    metaStore.close();
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

  /** A batch of the engine's records, as the log storage gets it from the dispatcher. */
  static ByteBuffer batch(final long position, final List<RaftJournals.EngineRecord> records)
      throws Exception {
    try (ActorScheduler scheduler = ActorScheduler.newActorScheduler().build()) {
      scheduler.start();
      final Dispatcher dispatcher =
          Dispatchers.create("batch")
              .actorScheduler(scheduler)
              .bufferSize(1 << 20)
              .initialPosition(position)
              .build();
      final Subscription subscription = dispatcher.openSubscription("appender");
      final Constructor<LogStreamBatchWriterImpl> constructor =
          LogStreamBatchWriterImpl.class.getDeclaredConstructor(int.class, Dispatcher.class);
      constructor.setAccessible(true);
      final LogStreamBatchWriterImpl writer = constructor.newInstance(1, dispatcher);
      for (final RaftJournals.EngineRecord each : records) {
        final LogStreamBatchWriter.LogEntryBuilder entry = writer.event();
        final LogStreamBatchWriter.LogEntryBuilder keyed =
            each.key() < 0 ? entry.keyNull() : entry.key(each.key());
        if (each.source() >= 0) {
          keyed.sourceIndex((int) (each.source() - position));
        }
        keyed.metadataWriter(each.metadata()).valueWriter(each.value()).done();
      }
      while (writer.tryWrite() < 0) {
        Thread.onSpinWait();
      }
      final BlockPeek block = new BlockPeek();
      while (subscription.peekBlock(block, 1 << 20, true) <= 0) {
        Thread.onSpinWait();
      }
      final ByteBuffer copy = ByteBuffer.allocate(block.getBlockLength());
      copy.put(block.getRawBuffer());
      dispatcher.close();
      return copy;
    }
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
