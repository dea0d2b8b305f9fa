package harness;

import io.aeron.Aeron;
import io.aeron.Counter;
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

    /** Converts a method's result to JSON: streams become a handle and their properties. */
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

    /** Subscribes to recording events and waits until the stream is connected; returns a handle. */
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

    /** The recording events since the last call: kind, recording id, and the arguments of the listener. */
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

    /** The current state of a publication. */
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
        row.put("position", publication.position());
        return row;
    }

    /** Offers deterministic messages and waits until all are accepted, or until the timeout. */
    public Object offer(
        final long handle,
        final long seed,
        final long firstIndex,
        final long count,
        final int minLength,
        final int maxLength,
        final long timeoutMs)
    {
        final Publication publication = publicationOf(handle);
        final Messages.Digest digest = new Messages.Digest();
        final long deadlineNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        long offered = 0;
        long position = publication.position();
        String failure = null;
        while (offered < count && null == failure)
        {
            final byte[] payload = Messages.message(seed, firstIndex + offered, minLength, maxLength);
            final UnsafeBuffer buffer = new UnsafeBuffer(payload);
            long result;
            while ((result = publication.offer(buffer)) < 0 && null == failure)
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
        final Map<String, Object> row = new LinkedHashMap<>();
        row.put("count", offered);
        row.put("position", position);
        row.put("digest", digest.hex());
        row.put("failure", failure);
        return row;
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
            rows.add(Map.of("sessionId", image.sessionId()));
        }
        return rows;
    }

    /**
     * Polls complete messages until `count` are received, the timeout, or the loss of the image.
     * With `details` each message is listed, payload in hex.
     */
    public Object poll(final long handle, final long count, final long timeoutMs, final boolean details)
    {
        final Subscription subscription = (Subscription)resource(handle);
        final Messages.Digest digest = new Messages.Digest();
        final List<Object> messages = new ArrayList<>();
        final long[] totals = new long[2];
        final long[] positions = {-1, -1};
        final FragmentAssembler assembler = new FragmentAssembler((buffer, offset, length, header) ->
        {
            final byte[] payload = new byte[length];
            buffer.getBytes(offset, payload);
            digest.update(payload);
            if (0 == totals[0]++)
            {
                positions[0] = header.position();
            }
            positions[1] = header.position();
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
            // One fragment at a time, so that no message after the last requested one is polled.
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

    private Object recordingCounter(final int sessionId)
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

    /** The recording-position counter of a stream as RecordingPos finds it, or null after a while. */
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
        aeron.close();
    }
}
