package harness;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The subset of JSON of the harness's line protocol; integers are exact longs. */
final class Json
{
    private final String text;
    private int at;

    private Json(final String text)
    {
        this.text = text;
    }

    static Object parse(final String text)
    {
        final Json json = new Json(text);
        final Object value = json.value();
        json.space();
        if (json.at != text.length())
        {
            throw json.error("nothing more");
        }
        return value;
    }

    static String write(final Object value)
    {
        final StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(final Object value, final StringBuilder out)
    {
        if (value == null || value instanceof Number || value instanceof Boolean)
        {
            out.append(value);
        }
        else if (value instanceof Map<?, ?> map)
        {
            String separator = "{";
            for (final Map.Entry<?, ?> entry : map.entrySet())
            {
                out.append(separator);
                write(entry.getKey().toString(), out);
                out.append(':');
                write(entry.getValue(), out);
                separator = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        }
        else if (value instanceof List<?> list)
        {
            String separator = "[";
            for (final Object item : list)
            {
                out.append(separator);
                write(item, out);
                separator = ",";
            }
            out.append(list.isEmpty() ? "[]" : "]");
        }
        else
        {
            quote(value.toString(), out);
        }
    }

    private static void quote(final String string, final StringBuilder out)
    {
        out.append('"');
        for (int i = 0; i < string.length(); i++)
        {
            final char c = string.charAt(i);
            if (c == '"' || c == '\\')
            {
                out.append('\\').append(c);
            }
            else if (c < 0x20 || c > 0x7e)
            {
                out.append(String.format("\\u%04x", (int)c));
            }
            else
            {
                out.append(c);
            }
        }
        out.append('"');
    }

    private Object value()
    {
        space();
        return switch (text.charAt(at))
        {
            case '{' -> map();
            case '[' -> list();
            case '"' -> string();
            default -> word();
        };
    }

    private Map<String, Object> map()
    {
        final Map<String, Object> map = new LinkedHashMap<>();
        at++;
        while (!take('}'))
        {
            space();
            final String key = string();
            if (!take(':'))
            {
                throw error(":");
            }
            map.put(key, value());
            take(',');
        }
        return map;
    }

    private List<Object> list()
    {
        final List<Object> list = new ArrayList<>();
        at++;
        while (!take(']'))
        {
            list.add(value());
            take(',');
        }
        return list;
    }

    private String string()
    {
        final StringBuilder out = new StringBuilder();
        at++;
        while (text.charAt(at) != '"')
        {
            char c = text.charAt(at++);
            if (c == '\\')
            {
                c = text.charAt(at++);
                switch (c)
                {
                    case 'n' -> c = '\n';
                    case 't' -> c = '\t';
                    case 'r' -> c = '\r';
                    case 'b' -> c = '\b';
                    case 'f' -> c = '\f';
                    case 'u' ->
                    {
                        c = (char)Integer.parseInt(text.substring(at, at + 4), 16);
                        at += 4;
                    }
                    default ->
                    {
                    }
                }
            }
            out.append(c);
        }
        at++;
        return out.toString();
    }

    private Object word()
    {
        final int start = at;
        while (at < text.length() && ",]} \t".indexOf(text.charAt(at)) < 0)
        {
            at++;
        }
        final String word = text.substring(start, at);
        return switch (word)
        {
            case "null" -> null;
            case "true" -> true;
            case "false" -> false;
            default -> Long.parseLong(word);
        };
    }

    private boolean take(final char wanted)
    {
        space();
        if (text.charAt(at) == wanted)
        {
            at++;
            return true;
        }
        return false;
    }

    private void space()
    {
        while (at < text.length() && Character.isWhitespace(text.charAt(at)))
        {
            at++;
        }
    }

    private IllegalArgumentException error(final String wanted)
    {
        return new IllegalArgumentException("expected " + wanted + " at column " + at + " of " + text);
    }
}
