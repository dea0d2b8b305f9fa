import io.aeron.Aeron;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.YieldingIdleStrategy;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.parquet.avro.AvroParquetWriter;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.LocalOutputFile;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.io.FileDescriptor;
import java.nio.ByteBuffer;
import java.nio.file.Path;

/**
 * A straightforward program for a recording to Parquet: replays it and appends each message
 * with parquet-avro, or passes each to a Python process on the standard output.
 *
 * Arguments: aeron directory, control request channel, recording id, end position of the replay,
 * Parquet file or "-".
 */
public final class ReplayToParquet
{
    private static final Schema SCHEMA = SchemaBuilder.record("message").fields()
        .requiredLong("position")
        .requiredLong("end_position")
        .requiredInt("stream_id")
        .requiredInt("session_id")
        .requiredInt("term_id")
        .requiredInt("term_offset")
        .requiredInt("flags")
        .requiredLong("reserved_value")
        .requiredInt("length")
        .requiredBytes("payload")
        .endRecord();

    private interface Sink extends AutoCloseable
    {
        void append(long position, DirectBuffer buffer, int offset, int length, Header header) throws Exception;
    }

    public static void main(final String[] args) throws Exception
    {
        final long endPosition = Long.parseLong(args[3]);
        final YieldingIdleStrategy idle = YieldingIdleStrategy.INSTANCE;
        try (Sink sink = "-".equals(args[4]) ? new PipeSink() : new AvroSink(Path.of(args[4]));
            Aeron aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(args[0]).idleStrategy(idle));
            AeronArchive archive = AeronArchive.connect(new AeronArchive.Context()
                .aeron(aeron)
                .idleStrategy(idle)
                .controlRequestChannel(args[1])
                .controlResponseChannel("aeron:udp?endpoint=localhost:0"));
            Subscription replay = archive.replay(Long.parseLong(args[2]), 0, endPosition, "aeron:ipc", 7777))
        {
            final long[] next = {0};
            final FragmentHandler handler = new FragmentAssembler((buffer, offset, length, header) ->
            {
                try
                {
                    sink.append(next[0], buffer, offset, length, header);
                    next[0] = header.position();
                }
                catch (final Exception failure)
                {
                    throw new IllegalStateException(failure);
                }
            });
            while (replay.imageCount() == 0)
            {
                idle.idle(0);
            }
            final Image image = replay.imageAtIndex(0);
            while (image.position() < endPosition)
            {
                final int fragments = image.poll(handler, 256);
                if (fragments == 0 && image.isClosed())
                {
                    throw new IllegalStateException("the replay ended at " + image.position());
                }
                idle.idle(fragments);
            }
        }
    }

    private static final class AvroSink implements Sink
    {
        private final ParquetWriter<GenericRecord> writer;

        AvroSink(final Path path) throws Exception
        {
            writer = AvroParquetWriter.<GenericRecord>builder(new LocalOutputFile(path))
                .withSchema(SCHEMA)
                .withDataModel(GenericData.get())
                .withCompressionCodec(CompressionCodecName.ZSTD)
                .build();
        }

        public void append(
            final long position, final DirectBuffer buffer, final int offset, final int length, final Header header)
            throws Exception
        {
            final byte[] payload = new byte[length];
            buffer.getBytes(offset, payload);
            final GenericRecord row = new GenericData.Record(SCHEMA);
            row.put(0, position);
            row.put(1, header.position());
            row.put(2, header.streamId());
            row.put(3, header.sessionId());
            row.put(4, header.termId());
            row.put(5, header.termOffset());
            row.put(6, header.flags() & 0xFF);
            row.put(7, header.reservedValue());
            row.put(8, length);
            row.put(9, ByteBuffer.wrap(payload));
            writer.write(row);
        }

        public void close() throws Exception
        {
            writer.close();
        }
    }

    private static final class PipeSink implements Sink
    {
        private final DataOutputStream out =
            new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 20));
        private byte[] payload = new byte[0];

        public void append(
            final long position, final DirectBuffer buffer, final int offset, final int length, final Header header)
            throws Exception
        {
            if (payload.length < length)
            {
                payload = new byte[length];
            }
            buffer.getBytes(offset, payload, 0, length);
            out.writeLong(position);
            out.writeLong(header.position());
            out.writeInt(header.streamId());
            out.writeInt(header.sessionId());
            out.writeInt(header.termId());
            out.writeInt(header.termOffset());
            out.writeInt(header.flags() & 0xFF);
            out.writeLong(header.reservedValue());
            out.writeInt(length);
            out.write(payload, 0, length);
        }

        public void close() throws Exception
        {
            out.flush();
        }
    }
}
