package harness;

import io.aeron.Subscription;
import io.aeron.archive.client.RecordingEventsAdapter;
import io.aeron.archive.client.RecordingEventsListener;

import java.util.ArrayList;
import java.util.List;

/** A subscription to an archive's recording events, with the events as decoded by Aeron's adapter. */
final class RecordingEvents implements AutoCloseable, RecordingEventsListener
{
    private final Subscription subscription;
    private final RecordingEventsAdapter adapter;
    private List<Object> rows = new ArrayList<>();

    RecordingEvents(final Subscription subscription)
    {
        this.subscription = subscription;
        adapter = new RecordingEventsAdapter(this, subscription, 10);
    }

    boolean isConnected()
    {
        return subscription.isConnected();
    }

    List<Object> take()
    {
        while (adapter.poll() > 0)
        {
            Thread.onSpinWait();
        }
        final List<Object> taken = rows;
        rows = new ArrayList<>();
        return taken;
    }

    @Override
    public void onStart(
        final long recordingId,
        final long startPosition,
        final int sessionId,
        final int streamId,
        final String channel,
        final String sourceIdentity)
    {
        rows.add(List.of("start", recordingId, startPosition, sessionId, streamId, channel, sourceIdentity));
    }

    @Override
    public void onProgress(final long recordingId, final long startPosition, final long position)
    {
        rows.add(List.of("progress", recordingId, startPosition, position));
    }

    @Override
    public void onStop(final long recordingId, final long startPosition, final long stopPosition)
    {
        rows.add(List.of("stop", recordingId, startPosition, stopPosition));
    }

    @Override
    public void close()
    {
        subscription.close();
    }
}
