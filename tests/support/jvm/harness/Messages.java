package harness;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** Deterministic messages and their digest; messages.py documents them and generates the same. */
final class Messages
{
    private static final long GOLDEN = 0x9E3779B97F4A7C15L;
    private static final int BLOCK_LENGTH = 13 * Long.BYTES;

    private Messages()
    {
    }

    private static long mix(final long value)
    {
        long z = value;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    static byte[] message(final long seed, final long index, final int minLength, final int maxLength)
    {
        final long state = mix(mix(seed * GOLDEN) + index);
        final int length = minLength +
            (int)Long.remainderUnsigned(mix(state + GOLDEN), maxLength - minLength + 1L);
        final byte[] block = new byte[BLOCK_LENGTH];
        final ByteBuffer words = ByteBuffer.wrap(block).order(ByteOrder.LITTLE_ENDIAN);
        for (int draw = 2; draw < 15; draw++)
        {
            words.putLong(mix(state + draw * GOLDEN));
        }
        final byte[] payload = new byte[length];
        for (int offset = 0; offset < length; offset += BLOCK_LENGTH)
        {
            System.arraycopy(block, 0, payload, offset, Math.min(BLOCK_LENGTH, length - offset));
        }
        return payload;
    }

    /** SHA-256 over each message's length (little-endian int) and payload. */
    static final class Digest
    {
        private final MessageDigest sha;
        private final ByteBuffer lengthBuffer = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN);

        Digest()
        {
            try
            {
                sha = MessageDigest.getInstance("SHA-256");
            }
            catch (final NoSuchAlgorithmException ex)
            {
                throw new IllegalStateException(ex);
            }
        }

        void update(final byte[] payload)
        {
            lengthBuffer.putInt(0, payload.length);
            sha.update(lengthBuffer.array());
            sha.update(payload);
        }

        String hex()
        {
            return HexFormat.of().formatHex(sha.digest());
        }
    }
}
