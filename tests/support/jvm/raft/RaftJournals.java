import io.atomix.cluster.MemberId;
import io.atomix.raft.cluster.RaftMember;
import io.atomix.raft.cluster.impl.DefaultRaftMember;
import io.atomix.raft.storage.log.RaftLog;
import io.atomix.raft.storage.log.entry.ApplicationEntry;
import io.atomix.raft.storage.log.entry.ConfigurationEntry;
import io.atomix.raft.storage.log.entry.InitialEntry;
import io.atomix.raft.storage.log.entry.RaftEntry;
import io.atomix.raft.storage.log.entry.RaftLogEntry;
import io.atomix.raft.storage.serializer.RaftEntrySBESerializer;
import io.camunda.zeebe.journal.Journal;
import io.camunda.zeebe.journal.JournalReader;
import io.camunda.zeebe.journal.JournalRecord;
import io.camunda.zeebe.protocol.impl.encoding.MsgPackConverter;
import io.camunda.zeebe.protocol.impl.record.RecordMetadata;
import io.camunda.zeebe.protocol.impl.record.UnifiedRecordValue;
import io.camunda.zeebe.protocol.impl.record.value.job.JobRecord;
import io.camunda.zeebe.protocol.impl.record.value.processinstance.ProcessInstanceCreationRecord;
import io.camunda.zeebe.protocol.record.RecordType;
import io.camunda.zeebe.protocol.record.RejectionType;
import io.camunda.zeebe.protocol.record.ValueType;
import io.camunda.zeebe.protocol.record.intent.Intent;
import io.camunda.zeebe.protocol.record.intent.JobIntent;
import io.camunda.zeebe.protocol.record.intent.ProcessInstanceCreationIntent;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Zeebe's journals, written and read by its own classes on request: a line of stdin is a command
 * with arguments after tabs, and lines of stdout are the response. Its last line is a dot, or a
 * "!" with an exception.
 *
 * <p>Release is another class for 1.0 and for 8.x, with what differs between them.
 */
public final class RaftJournals {
  private static final String NAME = "raft-partition-partition-1";
  private static final PrintStream OUT = System.out;
  private static RaftLog log;

  public static void main(final String[] args) throws Exception {
    final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      try {
        run(line.split("\t", -1));
        OUT.println(".");
      } catch (final Throwable error) {
        final String message = String.valueOf(error.getMessage()).replace('\n', ' ');
        OUT.println("!" + error.getClass().getSimpleName() + ": " + message);
      }
      OUT.flush();
    }
  }

  private static void run(final String[] words) throws Exception {
    switch (words[0]) {
      case "open" -> log = Release.log(NAME, new File(words[1]), number(words[2]));
      case "initial" -> log.append(new RaftLogEntry(Long.parseLong(words[1]), new InitialEntry()));
      case "application" -> {
        final UnsafeBuffer data = new UnsafeBuffer(bytes(words[4]));
        final ApplicationEntry entry =
            Release.application(Long.parseLong(words[2]), Long.parseLong(words[3]), data);
        log.append(new RaftLogEntry(Long.parseLong(words[1]), entry));
      }
      case "configuration" -> {
        final ConfigurationEntry entry =
            Release.configuration(Long.parseLong(words[2]), members(words[3]), members(words[4]));
        log.append(new RaftLogEntry(Long.parseLong(words[1]), entry));
      }
      case "engine" -> engine(Long.parseLong(words[1]), Long.parseLong(words[2]));
      case "intents" -> intents();
      case "replicate" ->
          Release.replicate(
              log,
              Long.parseLong(words[1]),
              Long.parseLong(words[2]),
              Long.parseLong(words[3]),
              Long.parseLong(words[4]),
              bytes(words[5]));
      case "deleteAfter" -> log.deleteAfter(Long.parseLong(words[1]));
      case "deleteUntil" -> log.deleteUntil(Long.parseLong(words[1]));
      case "flush" -> log.flush();
      case "reset" -> log.reset(Long.parseLong(words[1]));
      case "commit" -> Release.commit(log);
      case "close" -> Release.close(log);
      case "read" -> read(new File(words[1]), number(words[2]), Long.parseLong(words[3]));
      case "seek" -> seek(new File(words[1]), number(words[2]), words[3].split(","));
      case "time" -> time(new File(words[1]), number(words[2]));
      default -> throw new IllegalArgumentException(words[0]);
    }
  }

  /** A record of the engine, with its source's position and its key; -1 for none. */
  record EngineRecord(long source, long key, RecordMetadata metadata, UnifiedRecordValue value) {}

  /** Append a batch of the engine's records, and print what is in each. */
  private static void engine(final long term, final long position) throws Exception {
    final List<EngineRecord> records =
        List.of(
            new EngineRecord(
                -1,
                -1,
                new RecordMetadata()
                    .recordType(RecordType.COMMAND)
                    .valueType(ValueType.PROCESS_INSTANCE_CREATION)
                    .intent(ProcessInstanceCreationIntent.CREATE),
                new ProcessInstanceCreationRecord()
                    .setBpmnProcessId("order")
                    .setVariables(variables("{\"amount\":12.5,\"items\":[\"pen\",null,true]}"))),
            new EngineRecord(
                position,
                (1L << 51) + 7,
                new RecordMetadata()
                    .recordType(RecordType.EVENT)
                    .valueType(ValueType.JOB)
                    .intent(JobIntent.CREATED),
                new JobRecord().setType("payment é").setRetries(3).setVariables(variables("{}"))),
            new EngineRecord(
                position + 1,
                99,
                new RecordMetadata()
                    .recordType(RecordType.COMMAND_REJECTION)
                    .valueType(ValueType.JOB)
                    .intent(JobIntent.COMPLETE)
                    .rejectionType(RejectionType.NOT_FOUND)
                    .rejectionReason("no such job: ü"),
                new JobRecord()));
    final UnsafeBuffer batch = new UnsafeBuffer(Release.batch(position, records));
    final long last = position + records.size() - 1;
    log.append(new RaftLogEntry(term, Release.application(position, last, batch)));
    for (final EngineRecord each : records) {
      OUT.println(
          String.join(
              "\t",
              Long.toString(each.source()),
              Long.toString(each.key()),
              each.metadata().getRecordType().name(),
              each.metadata().getValueType().name(),
              each.metadata().getIntent().name(),
              each.metadata().getRejectionType().name(),
              each.metadata().getRejectionReason(),
              each.metadata().getBrokerVersion().toString(),
              each.value().toJson()));
    }
  }

  private static DirectBuffer variables(final String json) {
    return new UnsafeBuffer(MsgPackConverter.convertToMsgPack(json));
  }

  /** Print each type of value, its number, and the intents by their numbers from 0. */
  private static void intents() {
    for (final ValueType type : ValueType.values()) {
      final List<String> names = new ArrayList<>();
      for (int number = 0; number < 64; number++) {
        try {
          names.add(Intent.fromProtocolValue(type, (short) number).name());
        } catch (final RuntimeException unknown) {
          names.add("UNKNOWN");
        }
      }
      OUT.println(type.name() + "\t" + type.value() + "\t" + String.join(",", names));
    }
  }

  /** Print a line for each record: index, asqn, checksum, raft entry, and what is in the entry. */
  private static void read(final File folder, final int segmentSize, final long flushedIndex)
      throws Exception {
    final RaftEntrySBESerializer serializer = new RaftEntrySBESerializer();
    try (Journal journal = Release.journal(NAME, folder, segmentSize, flushedIndex);
        JournalReader reader = journal.openReader()) {
      while (reader.hasNext()) {
        final JournalRecord record = reader.next();
        final RaftLogEntry entry = serializer.readRaftLogEntry(record.data());
        OUT.println(
            String.join(
                "\t",
                Long.toString(record.index()),
                Long.toString(record.asqn()),
                Long.toString(record.checksum()),
                hex(record.data()),
                Long.toString(entry.term()),
                text(entry.entry())));
      }
    }
  }

  /** Print for each asqn the index of the record that a reader returns after seeking it. */
  private static void seek(final File folder, final int segmentSize, final String[] asqns)
      throws Exception {
    try (Journal journal = Release.journal(NAME, folder, segmentSize, 0);
        JournalReader reader = journal.openReader()) {
      for (final String asqn : asqns) {
        reader.seekToAsqn(Long.parseLong(asqn));
        OUT.println(reader.next().index());
      }
    }
  }

  /** Print the records and the nanoseconds that it takes to open a journal and read all of it. */
  private static void time(final File folder, final int segmentSize) throws Exception {
    final long begin = System.nanoTime();
    long count = 0;
    try (Journal journal = Release.journal(NAME, folder, segmentSize, 0);
        JournalReader reader = journal.openReader()) {
      while (reader.hasNext()) {
        reader.next();
        count++;
      }
    }
    OUT.println(count + "\t" + (System.nanoTime() - begin));
  }

  private static String text(final RaftEntry entry) {
    if (entry instanceof final ApplicationEntry application) {
      return String.join(
          "\t",
          "APPLICATION",
          Long.toString(application.lowestPosition()),
          Long.toString(application.highestPosition()),
          hex(Release.data(application)));
    }
    if (entry instanceof final ConfigurationEntry configuration) {
      return String.join(
          "\t",
          "CONFIGURATION",
          Long.toString(configuration.timestamp()),
          text(Release.members(configuration)),
          text(Release.oldMembers(configuration)));
    }
    return "INITIAL";
  }

  private static String text(final Collection<RaftMember> members) {
    return members.stream()
        .map(m -> m.memberId().id() + "/" + m.getType() + "/" + m.getLastUpdated().toEpochMilli())
        .collect(Collectors.joining(","));
  }

  private static List<RaftMember> members(final String text) {
    final List<RaftMember> members = new ArrayList<>();
    for (final String member : text.isEmpty() ? new String[0] : text.split(",")) {
      final String[] parts = member.split("/");
      members.add(
          new DefaultRaftMember(
              MemberId.from(parts[0]),
              RaftMember.Type.valueOf(parts[1]),
              Instant.ofEpochMilli(Long.parseLong(parts[2]))));
    }
    return members;
  }

  private static int number(final String text) {
    return Integer.parseInt(text);
  }

  private static byte[] bytes(final String hex) {
    return java.util.HexFormat.of().parseHex(hex);
  }

  private static String hex(final DirectBuffer buffer) {
    final byte[] bytes = new byte[buffer.capacity()];
    buffer.getBytes(0, bytes);
    return java.util.HexFormat.of().formatHex(bytes);
  }
}
