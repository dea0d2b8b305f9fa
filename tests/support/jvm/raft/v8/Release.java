import io.atomix.raft.cluster.RaftMember;
import io.atomix.raft.protocol.PersistedRaftRecord;
import io.atomix.raft.storage.RaftStorage;
import io.atomix.raft.storage.log.RaftLog;
import io.atomix.raft.storage.log.RaftLogFlusher;
import io.atomix.raft.storage.log.entry.ApplicationEntry;
import io.atomix.raft.storage.log.entry.ConfigurationEntry;
import io.atomix.raft.storage.log.entry.SerializedApplicationEntry;
import io.atomix.raft.storage.system.MetaStore;
import io.camunda.zeebe.journal.Journal;
import io.camunda.zeebe.journal.JournalMetaStore;
import io.camunda.zeebe.journal.file.SegmentedJournal;
import io.camunda.zeebe.logstreams.impl.log.SequencedBatch;
import io.camunda.zeebe.logstreams.impl.serializer.SequencedBatchSerializer;
import io.camunda.zeebe.logstreams.log.LogAppendEntry;
import io.camunda.zeebe.protocol.impl.record.RecordMetadata;
import io.camunda.zeebe.protocol.impl.record.UnifiedRecordValue;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.agrona.DirectBuffer;

/** Releases 8.2 and 8.3 of Zeebe; what differs between these is looked up at run time. */
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
        .withFlusher(RaftLogFlusher.Factory.DIRECT)
        .withMetaStore(metaStore)
        .build();
  }

  /** Flush, which stores the last index. */
  static void commit(final RaftLog log) {
    log.flush();
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
        .withMetaStore(new Flushed(flushedIndex))
        .build();
  }

  static ApplicationEntry application(final long lowest, final long highest, final DirectBuffer data) {
    return new SerializedApplicationEntry(lowest, highest, data);
  }

  static DirectBuffer data(final ApplicationEntry entry) {
    return ((SerializedApplicationEntry) entry).data();
  }

  static ConfigurationEntry configuration(
      final long timestamp, final List<RaftMember> members, final List<RaftMember> oldMembers)
      throws ReflectiveOperationException {
    if (oldMembers.isEmpty()) {
      return new ConfigurationEntry(timestamp, members);
    }
    return ConfigurationEntry.class
        .getConstructor(long.class, Collection.class, Collection.class)
        .newInstance(timestamp, members, oldMembers);
  }

  /** A batch of the engine's records, as the log storage gets it. */
  static ByteBuffer batch(final long position, final List<RaftJournals.EngineRecord> records) {
    final List<LogAppendEntry> entries = new ArrayList<>();
    for (final RaftJournals.EngineRecord each : records) {
      final LogAppendEntry entry = LogAppendEntry.of(each.key(), each.metadata(), each.value());
      final int source = (int) (each.source() - position);
      entries.add(each.source() < 0 ? entry : new Sourced(entry, source));
    }
    final SequencedBatch batch = new SequencedBatch(1_700_000_000_000L, position, -1, entries);
    return SequencedBatchSerializer.serializeBatch(batch);
  }

  /** An entry that was caused by another one of its batch. */
  private record Sourced(LogAppendEntry entry, int sourceIndex) implements LogAppendEntry {
    @Override
    public long key() {
      return entry.key();
    }

    @Override
    public RecordMetadata recordMetadata() {
      return entry.recordMetadata();
    }

    @Override
    public UnifiedRecordValue recordValue() {
      return entry.recordValue();
    }

    @Override
    public boolean isProcessed() {
      return true;
    }
  }

  static Collection<RaftMember> members(final ConfigurationEntry entry) {
    final Collection<RaftMember> found = called(entry, "newMembers");
    return found == null ? called(entry, "members") : found;
  }

  static Collection<RaftMember> oldMembers(final ConfigurationEntry entry) {
    final Collection<RaftMember> found = called(entry, "oldMembers");
    return found == null ? List.of() : found;
  }

  @SuppressWarnings("unchecked")
  private static Collection<RaftMember> called(final ConfigurationEntry entry, final String name) {
    try {
      final Method method = ConfigurationEntry.class.getMethod(name);
      return (Collection<RaftMember>) method.invoke(entry);
    } catch (final NoSuchMethodException missing) {
      return null;
    } catch (final ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
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

  /** The last flushed index, which a broker stores outside its journal. */
  private static final class Flushed implements JournalMetaStore {
    private long index;

    Flushed(final long index) {
      this.index = index;
    }

    @Override
    public void storeLastFlushedIndex(final long flushed) {
      index = flushed;
    }

    @Override
    public long loadLastFlushedIndex() {
      return index;
    }

    @Override
    public void resetLastFlushedIndex() {
      index = 0;
    }

    @Override
    public boolean hasLastFlushedIndex() {
      return index > 0;
    }
  }
}
