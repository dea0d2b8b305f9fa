package harness;

import io.aeron.Aeron;
import io.aeron.Counter;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.archive.status.RecordingPos;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.CountersReader;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Publications, subscriptions and counters of this process, each known by a handle. */
public final class Streams implements AutoCloseable
{
    private final Aeron aeron;
    private final Map<Long, Object> resources = new HashMap<>();
    private long nextHandle = 1;

    Streams(final String aeronDirectory)
    {
        aeron = Aeron.connect(new Aeron.Context().aeronDirectoryName(aeronDirectory));
    }

    Aeron aeron()
    {
        return aeron;
    }

    Object resource(final long handle)
    {
        final Object resource = resources.get(handle);
        if (null == resource)
        {
            throw new IllegalArgumentException("no resource has the handle " + handle);
        }
        return resource;
    }

    private long register(final Object resource)
    {
        resources.put(nextHandle, resource);
        return nextHandle++;
    }

    /** Makes a method's result fit for JSON: streams become a handle and what they are. */
    Object describe(final Object result)
    {
        if (result instanceof Publication publication)
        {
            return publication(register(publication));
        }
        if (result instanceof Subscription subscription)
        {
            final Map<String, Object> row = new LinkedHashMap<>();
            row.put("handle", register(subscription));
            row.put("channel", subscription.channel());
            row.put("streamId", subscription.streamId());
            row.put("registrationId", subscription.registrationId());
            return row;
        }
        return result;
    }

    public Object addPublication(final String channel, final int streamId)
    {
        return aeron.addPublication(channel, streamId);
    }

    public Object addExclusivePublication(final String channel, final int streamId)
    {
        return publication(register(aeron.addExclusivePublication(channel, streamId)));
    }

    public Object addSubscription(final String channel, final int streamId)
    {
        return aeron.addSubscription(channel, streamId);
    }

    /** Subscribes to recording events and waits until the archive's stream has come; returns a handle. */
    public long addRecordingEvents(final String channel, final int streamId, final long timeoutMs)
        throws InterruptedException
    {
        final RecordingEvents events = new RecordingEvents(aeron.addSubscription(channel, streamId));
        final long deadlineNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        while (!events.isConnected())
        {
            if (System.nanoTime() - deadlineNs > 0)
            {
                events.close();
                throw new IllegalStateException("no recording events on " + channel);
            }
            Thread.sleep(1);
        }
        return register(events);
    }

    /** The recording events that have come since: kind, recording id, and the arguments of the listener. */
    public Object takeRecordingEvents(final long handle)
    {
        return ((RecordingEvents)resource(handle)).take();
    }

    public void closeResource(final long handle) throws Exception
    {
        ((AutoCloseable)resource(handle)).close();
        resources.remove(handle);
    }

    // ---- publishing ----

    /** How a publication stands now. */
    public Object publication(final long handle)
    {
        final Publication publication = publicationOf(handle);
        final Map<String, Object> row = new LinkedHashMap<>();
        row.put("handle", handle);
        row.put("channel", publication.channel());
        row.put("streamId", publication.streamId());
        row.put("sessionId", publication.sessionId());
        row.put("registrationId", publication.registrationId());
        row.put("initialTermId", publication.initialTermId());
        row.put("termBufferLength", publication.termBufferLength());
        row.put("maxPayloadLength", publication.maxPayloadLength());
        row.put("maxMessageLength", publication.maxMessageLength());
        row.put("position", publication.position());
        row.put("isConnected", publication.isConnected());
        row.put("isClosed", publication.isClosed());
        return row;
    }

    /** Offers deterministic messages and waits until all are in. */
    public Object offer(
        final long handle,
        final long seed,
        final long firstIndex,
        final long count,
        final int minLength,
        final int maxLength,
        final long timeoutMs)
    {
        final Offering offering = new Offering(
            publicationOf(handle), seed, firstIndex, count, minLength, maxLength, timeoutMs);
        offering.run();
        return offering.progress();
    }

    /** As {@link #offer}, from a thread of its own; look at it with {@link #offering}. */
    public long startOffering(
        final long handle,
        final long seed,
        final long firstIndex,
        final long count,
        final int minLength,
        final int maxLength,
        final long timeoutMs)
    {
        final Offering offering = new Offering(
            publicationOf(handle), seed, firstIndex, count, minLength, maxLength, timeoutMs);
        offering.start();
        return register(offering);
    }

    public Object offering(final long handle)
    {
        return ((Offering)resource(handle)).progress();
    }

    /** Offers bytes as they are, once if the timeout is 0; returns what the last try returned. */
    public long offerBytes(final long handle, final String hex, final long timeoutMs)
    {
        final UnsafeBuffer buffer = new UnsafeBuffer(HexFormat.of().parseHex(hex));
        final Publication publication = publicationOf(handle);
        final long deadlineNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        long result;
        do
        {
            result = publication.offer(buffer);
            Thread.yield();
        }
        while (result < 0 && result != Publication.CLOSED && System.nanoTime() < deadlineNs);
        return result;
    }

    private Publication publicationOf(final long handle)
    {
        return (Publication)resource(handle);
    }

    // ---- subscribing ----

    public Object images(final long handle)
    {
        final List<Object> rows = new ArrayList<>();
        for (final Image image : ((Subscription)resource(handle)).images())
        {
            final Map<String, Object> row = new LinkedHashMap<>();
            row.put("sessionId", image.sessionId());
            row.put("correlationId", image.correlationId());
            row.put("sourceIdentity", image.sourceIdentity());
            row.put("initialTermId", image.initialTermId());
            row.put("termBufferLength", image.termBufferLength());
            row.put("mtuLength", image.mtuLength());
            row.put("joinPosition", image.joinPosition());
            row.put("position", image.position());
            row.put("isEndOfStream", image.isEndOfStream());
            rows.add(row);
        }
        return rows;
    }

    public String resolvedChannel(final long handle)
    {
        return ((Subscription)resource(handle)).tryResolveChannelEndpointPort();
    }

    /**
     * Takes whole messages until `count` have come, the time is up, or an image that was there has
     * gone. With `details` each message is listed, payload in hex.
     */
    public Object poll(final long handle, final long count, final long timeoutMs, final boolean details)
    {
        final Subscription subscription = (Subscription)resource(handle);
        final Messages.Digest digest = new Messages.Digest();
        final List<Object> messages = new ArrayList<>();
        final long[] totals = new long[2];
        final long[] positions = {-1, -1};
        final byte[][] ends = new byte[2][];
        final FragmentAssembler assembler = new FragmentAssembler((buffer, offset, length, header) ->
        {
            final byte[] payload = new byte[length];
            buffer.getBytes(offset, payload);
            digest.update(payload);
            if (0 == totals[0]++)
            {
                positions[0] = header.position();
                ends[0] = payload;
            }
            positions[1] = header.position();
            ends[1] = payload;
            totals[1] += length;
            if (details)
            {
                messages.add(message(payload, header));
            }
        });

        final long deadlineNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        boolean hadImage = false;
        boolean ended = false;
        while (totals[0] < count && !ended && System.nanoTime() < deadlineNs)
        {
            // One fragment at a time, so that no message beyond the last wanted is taken.
            final int fragments = subscription.poll(assembler, count - totals[0] > 64 ? 32 : 1);
            if (0 == fragments)
            {
                final boolean hasImage = subscription.imageCount() > 0;
                ended = hadImage && (!hasImage || allEnded(subscription));
                hadImage |= hasImage;
                Thread.yield();
            }
            else
            {
                hadImage = true;
            }
        }

        final Map<String, Object> row = new LinkedHashMap<>();
        row.put("count", totals[0]);
        row.put("bytes", totals[1]);
        row.put("digest", digest.hex());
        row.put("ended", ended);
        row.put("firstPosition", positions[0]);
        row.put("lastPosition", positions[1]);
        row.put("first", null == ends[0] ? null : HexFormat.of().formatHex(ends[0]));
        row.put("last", null == ends[1] ? null : HexFormat.of().formatHex(ends[1]));
        if (details)
        {
            row.put("messages", messages);
        }
        return row;
    }

    private static boolean allEnded(final Subscription subscription)
    {
        return subscription.images().stream().allMatch(Image::isEndOfStream);
    }

    private static Map<String, Object> message(final byte[] payload, final Header header)
    {
        final Map<String, Object> row = new LinkedHashMap<>();
        row.put("position", header.position());
        row.put("length", payload.length);
        row.put("sessionId", header.sessionId());
        row.put("streamId", header.streamId());
        row.put("termId", header.termId());
        row.put("termOffset", header.termOffset());
        row.put("flags", header.flags() & 0xFF);
        row.put("reservedValue", header.reservedValue());
        row.put("payload", HexFormat.of().formatHex(payload));
        return row;
    }

    // ---- counters ----

    public Object addCounter(final int typeId, final String label)
    {
        final Counter counter = aeron.addCounter(typeId, label);
        return Map.of(
            "handle", register(counter), "counterId", counter.id(), "registrationId", counter.registrationId());
    }

    public void setCounter(final long handle, final long value)
    {
        ((Counter)resource(handle)).setRelease(value);
    }

    public Object counters(final int wantedTypeId)
    {
        final CountersReader reader = aeron.countersReader();
        final List<Object> rows = new ArrayList<>();
        reader.forEach((counterId, typeId, keyBuffer, label) ->
        {
            if (typeId == wantedTypeId)
            {
                final Map<String, Object> row = new LinkedHashMap<>();
                row.put("counterId", counterId);
                row.put("typeId", typeId);
                row.put("key", hex(keyBuffer));
                row.put("label", label);
                row.put("registrationId", reader.getCounterRegistrationId(counterId));
                row.put("value", reader.getCounterValue(counterId));
                rows.add(row);
            }
        });
        return rows;
    }

    /** The recording-position counter of a stream as RecordingPos finds it, or null. */
    public Object recordingCounter(final int sessionId)
    {
        final CountersReader reader = aeron.countersReader();
        final int counterId = RecordingPos.findCounterIdBySession(reader, sessionId);
        if (CountersReader.NULL_COUNTER_ID == counterId)
        {
            return null;
        }
        final long recordingId = RecordingPos.getRecordingId(reader, counterId);
        final Map<String, Object> row = new LinkedHashMap<>();
        row.put("counterId", counterId);
        row.put("recordingId", recordingId);
        row.put("sourceIdentity", RecordingPos.getSourceIdentity(reader, counterId));
        row.put("isActive", RecordingPos.isActive(reader, counterId, recordingId));
        row.put("label", reader.getCounterLabel(counterId));
        row.put("position", reader.getCounterValue(counterId));
        return row;
    }

    /** As {@link #recordingCounter}, waiting for one to be there. */
    public Object awaitRecordingCounter(final int sessionId, final long timeoutMs) throws InterruptedException
    {
        final long deadlineNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        Object found;
        while (null == (found = recordingCounter(sessionId)) && System.nanoTime() < deadlineNs)
        {
            Thread.sleep(1);
        }
        return found;
    }

    /** Waits for a counter to reach a value; returns the last one seen. */
    public long awaitCounter(final int counterId, final long value, final long timeoutMs)
        throws InterruptedException
    {
        final long deadlineNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        final CountersReader reader = aeron.countersReader();
        while (reader.getCounterValue(counterId) < value && System.nanoTime() < deadlineNs)
        {
            Thread.sleep(1);
        }
        return reader.getCounterValue(counterId);
    }

    private static String hex(final DirectBuffer buffer)
    {
        final byte[] bytes = new byte[buffer.capacity()];
        buffer.getBytes(0, bytes);
        return HexFormat.of().formatHex(bytes);
    }

    @Override
    public void close()
    {
        resources.values().forEach((resource) ->
        {
            if (resource instanceof Offering offering)
            {
                offering.close();
            }
        });
        aeron.close();
    }

    /** Offers a run of deterministic messages; may be watched and stopped from another thread. */
    private static final class Offering extends Thread implements AutoCloseable
    {
        private final Publication publication;
        private final long seed;
        private final long firstIndex;
        private final long count;
        private final int minLength;
        private final int maxLength;
        private final long timeoutMs;
        private volatile long offered;
        private volatile long position;
        private volatile String failure;
        private volatile boolean isDone;
        private volatile boolean isStopped;
        private volatile String digest;

        Offering(
            final Publication publication,
            final long seed,
            final long firstIndex,
            final long count,
            final int minLength,
            final int maxLength,
            final long timeoutMs)
        {
            super("offering");
            setDaemon(true);
            this.publication = publication;
            this.seed = seed;
            this.firstIndex = firstIndex;
            this.count = count;
            this.minLength = minLength;
            this.maxLength = maxLength;
            this.timeoutMs = timeoutMs;
            position = publication.position();
        }

        @Override
        public void run()
        {
            final Messages.Digest digest = new Messages.Digest();
            final long deadlineNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
            while (offered < count && null == failure && !isStopped)
            {
                final byte[] payload = Messages.message(seed, firstIndex + offered, minLength, maxLength);
                final UnsafeBuffer buffer = new UnsafeBuffer(payload);
                long result;
                while ((result = publication.offer(buffer)) < 0 && null == failure && !isStopped)
                {
                    if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED ||
                        System.nanoTime() > deadlineNs)
                    {
                        failure = Publication.errorString(result);
                    }
                    Thread.yield();
                }
                if (result > 0)
                {
                    digest.update(payload);
                    position = result;
                    offered++;
                }
            }
            this.digest = digest.hex();
            isDone = true;
        }

        Map<String, Object> progress()
        {
            final Map<String, Object> row = new LinkedHashMap<>();
            row.put("isDone", isDone);
            row.put("count", offered);
            row.put("position", position);
            row.put("digest", digest);
            row.put("failure", failure);
            return row;
        }

        @Override
        public void close()
        {
            isStopped = true;
            try
            {
                join();
            }
            catch (final InterruptedException ex)
            {
                Thread.currentThread().interrupt();
            }
        }
    }
}
