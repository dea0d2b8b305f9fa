package harness;

import io.aeron.archive.client.RecordingDescriptorConsumer;
import io.aeron.archive.client.RecordingSubscriptionDescriptorConsumer;
import io.aeron.archive.client.ReplayParams;
import io.aeron.archive.client.ReplicationParams;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Calls a public method by name with arguments from JSON. Numbers become long or int, strings
 * enums or bytes by the parameter's type, {"handle": n} the publication or subscription, any other
 * object ReplayParams or ReplicationParams. Consumers of descriptors are not passed:
 * their descriptors become the result.
 */
final class Invoker
{
    private static final Object MISFIT = new Object();

    private Invoker()
    {
    }

    static boolean has(final Class<?> type, final String name)
    {
        for (final Method method : type.getDeclaredMethods())
        {
            if (method.getName().equals(name) && Modifier.isPublic(method.getModifiers()))
            {
                return true;
            }
        }
        return false;
    }

    static Object call(final Object target, final Streams streams, final String name, final List<?> args)
        throws InvocationTargetException, IllegalAccessException
    {
        for (final Method method : target.getClass().getDeclaredMethods())
        {
            if (method.getName().equals(name) && Modifier.isPublic(method.getModifiers()))
            {
                final List<Object> rows = new ArrayList<>();
                final Object[] values = convert(method.getParameterTypes(), args, streams, rows);
                if (values != null)
                {
                    method.setAccessible(true);
                    final Object result = method.invoke(target, values);
                    return values.length > args.size() ? rows : streams.describe(result);
                }
            }
        }
        throw new IllegalArgumentException("no method " + name + " takes " + Json.write(args));
    }

    private static Object[] convert(
        final Class<?>[] types, final List<?> args, final Streams streams, final List<Object> rows)
    {
        final Object[] values = new Object[types.length];
        int next = 0;
        for (int i = 0; i < types.length; i++)
        {
            if (types[i] == RecordingDescriptorConsumer.class)
            {
                values[i] = recordings(rows);
            }
            else if (types[i] == RecordingSubscriptionDescriptorConsumer.class)
            {
                values[i] = subscriptions(rows);
            }
            else if (next == args.size())
            {
                return null;
            }
            else
            {
                values[i] = convert(types[i], args.get(next++), streams);
                if (values[i] == MISFIT)
                {
                    return null;
                }
            }
        }
        return next == args.size() ? values : null;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object convert(final Class<?> type, final Object value, final Streams streams)
    {
        if (value instanceof Long number)
        {
            if (type == int.class)
            {
                return Math.toIntExact(number);
            }
            return type == long.class ? number : MISFIT;
        }
        if (value instanceof Boolean)
        {
            return type == boolean.class ? value : MISFIT;
        }
        if (value instanceof String string)
        {
            return type == String.class ? string :
                type == byte[].class ? string.getBytes(StandardCharsets.US_ASCII) :
                type.isEnum() ? Enum.valueOf((Class)type, string) : MISFIT;
        }
        if (value instanceof Map<?, ?> map)
        {
            if (map.containsKey("handle") && type != Map.class)
            {
                final Object resource = streams.resource((Long)map.get("handle"));
                return type.isInstance(resource) ? resource : MISFIT;
            }
            return type == ReplayParams.class ? fill(new ReplayParams(), map) :
                type == ReplicationParams.class ? fill(new ReplicationParams(), map) :
                type == Map.class ? map : MISFIT;
        }
        return type.isPrimitive() ? MISFIT : null;
    }

    /** Sets each named property through its setter of the same name. */
    static <T> T fill(final T target, final Map<?, ?> properties)
    {
        properties.forEach((name, value) ->
        {
            try
            {
                for (final Method method : target.getClass().getMethods())
                {
                    if (method.getName().equals(name) && method.getParameterCount() == 1)
                    {
                        final Object converted = convert(method.getParameterTypes()[0], value, null);
                        if (converted != MISFIT)
                        {
                            method.invoke(target, converted);
                            return;
                        }
                    }
                }
            }
            catch (final IllegalAccessException | InvocationTargetException ex)
            {
                throw new IllegalArgumentException(name + ": " + ex.getCause(), ex);
            }
            throw new IllegalArgumentException(
                target.getClass().getSimpleName() + " has no property " + name + " for " + value);
        });
        return target;
    }

    private static RecordingDescriptorConsumer recordings(final List<Object> rows)
    {
        return (controlSessionId, correlationId, recordingId, startTimestamp, stopTimestamp, startPosition,
            stopPosition, initialTermId, segmentFileLength, termBufferLength, mtuLength, sessionId, streamId,
            strippedChannel, originalChannel, sourceIdentity) ->
        {
            final Map<String, Object> row = new LinkedHashMap<>();
            row.put("controlSessionId", controlSessionId);
            row.put("correlationId", correlationId);
            row.put("recordingId", recordingId);
            row.put("startTimestamp", startTimestamp);
            row.put("stopTimestamp", stopTimestamp);
            row.put("startPosition", startPosition);
            row.put("stopPosition", stopPosition);
            row.put("initialTermId", initialTermId);
            row.put("segmentFileLength", segmentFileLength);
            row.put("termBufferLength", termBufferLength);
            row.put("mtuLength", mtuLength);
            row.put("sessionId", sessionId);
            row.put("streamId", streamId);
            row.put("strippedChannel", strippedChannel);
            row.put("originalChannel", originalChannel);
            row.put("sourceIdentity", sourceIdentity);
            rows.add(row);
        };
    }

    private static RecordingSubscriptionDescriptorConsumer subscriptions(final List<Object> rows)
    {
        return (controlSessionId, correlationId, subscriptionId, streamId, strippedChannel) ->
        {
            final Map<String, Object> row = new LinkedHashMap<>();
            row.put("subscriptionId", subscriptionId);
            row.put("streamId", streamId);
            row.put("strippedChannel", strippedChannel);
            rows.add(row);
        };
    }
}
