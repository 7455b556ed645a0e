// Text for the JSON reader, a window at a time: a document in memory, or one inside a JSON string as base64, decoded on its way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace cuzk::json {

struct Fault {
    std::string path, message;
    std::int64_t offset;  // byte of the file
    std::int64_t inner;   // byte of the embedded document, or -1
};

struct Malformed {
    std::string message;
};

// Bytes from `at` to `end` can be read; refill() brings more and says whether there were any.
class Source {
  public:
    virtual ~Source() = default;
    int peek() { return at != end || refill() ? *at : -1; }
    int take() {
        const int c = peek();
        if (c >= 0) at++;
        return c;
    }
    std::int64_t offset() const { return before_ + (at - begin_); }
    virtual std::int64_t file_offset() const { return offset(); }
    virtual bool embedded() const { return false; }
    const std::uint8_t *at = nullptr, *end = nullptr;

  protected:
    virtual bool refill() { return false; }
    void window(const std::uint8_t* from, const std::uint8_t* to) {
        if (begin_) before_ += end - begin_;
        begin_ = at = from;
        end = to;
    }

  private:
    const std::uint8_t* begin_ = nullptr;
    std::int64_t before_ = 0;
};

class Memory : public Source {
  public:
    Memory(const std::uint8_t* data, std::size_t bytes) { window(data, data + bytes); }
};

// Standard base64 with padding, from behind a string's opening quote up to and with its closing one.
class Base64 : public Source {
  public:
    explicit Base64(Source& outer) : outer_(outer) {}
    std::int64_t file_offset() const override { return outer_.file_offset(); }
    bool embedded() const override { return true; }

  protected:
    bool refill() override {
        std::uint8_t* to = buffer_;
        while (!ended_ && to + 3 <= buffer_ + sizeof buffer_) {
            to = decode_plain(to);
            if (to + 3 <= buffer_ + sizeof buffer_) to = decode_group(to);
        }
        if (to == buffer_) return false;
        window(buffer_, to);
        return true;
    }

  private:
    static constexpr std::uint8_t OTHER = 64;

    static std::uint8_t value(int c) {
        if (c >= 'A' && c <= 'Z') return static_cast<std::uint8_t>(c - 'A');
        if (c >= 'a' && c <= 'z') return static_cast<std::uint8_t>(c - 'a' + 26);
        if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0' + 52);
        return c == '+' ? 62 : c == '/' ? 63 : OTHER;
    }

    struct Table {
        std::uint8_t of[256];
        Table() {
            for (int c = 0; c < 256; c++) of[c] = value(c);
        }
    };

    // Groups of four ordinary characters, as long as there are any.
    std::uint8_t* decode_plain(std::uint8_t* to) {
        static const Table table;
        const std::uint8_t* from = outer_.at;
        while (outer_.end - from >= 4 && to + 3 <= buffer_ + sizeof buffer_) {
            const std::uint32_t a = table.of[from[0]], b = table.of[from[1]], c = table.of[from[2]], d = table.of[from[3]];
            if ((a | b | c | d) & OTHER) break;
            const std::uint32_t bits = a << 18 | b << 12 | c << 6 | d;
            to[0] = static_cast<std::uint8_t>(bits >> 16);
            to[1] = static_cast<std::uint8_t>(bits >> 8);
            to[2] = static_cast<std::uint8_t>(bits);
            to += 3;
            from += 4;
        }
        outer_.at = from;
        return to;
    }

    // One group in full care: escapes, padding, the end.
    std::uint8_t* decode_group(std::uint8_t* to) {
        int group[4], n = 0;
        while (n < 4) {
            const int c = character();
            if (c < 0) break;
            group[n++] = c;
        }
        if (n < 4) {
            if (n) throw Malformed{"base64 whose length is not a multiple of 4"};
            ended_ = true;
            return to;
        }
        const int padding = (group[3] == '=') + (group[3] == '=' && group[2] == '=');
        std::uint32_t bits = 0;
        for (int i = 0; i < 4; i++) {
            const std::uint8_t v = i < 4 - padding ? value(group[i]) : 0;
            if (v == OTHER) throw Malformed{"not a character of standard base64"};
            bits = bits << 6 | v;
        }
        for (int i = 0; i < 3 - padding; i++) *to++ = static_cast<std::uint8_t>(bits >> (16 - 8 * i));
        if (padding) {
            if (bits & ((1u << 8 * padding) - 1)) throw Malformed{"base64 with bits behind its end"};
            if (character() >= 0) throw Malformed{"base64 that goes on behind its padding"};
            ended_ = true;
        }
        return to;
    }

    // The next character of the string, or -1 at its closing quote.
    int character() {
        int c = outer_.take();
        if (c < 0) throw Malformed{"the text ends inside a string"};
        if (c == '"') return -1;
        if (c < 0x20) throw Malformed{"a control character inside a string"};
        if (c != '\\') return c;
        c = outer_.take();
        if (c != 'u') return c == '/' ? '/' : 256;
        int code = 0;
        for (int i = 0; i < 4; i++) {
            const int h = outer_.take() | 0x20;
            if (!((h >= '0' && h <= '9') || (h >= 'a' && h <= 'f'))) throw Malformed{"not four hexadecimal digits behind \\u"};
            code = code * 16 + (h <= '9' ? h - '0' : h - 'a' + 10);
        }
        return code < 0x20 ? 256 : code;
    }

    Source& outer_;
    bool ended_ = false;
    std::uint8_t buffer_[48 << 10];
};

}  // namespace cuzk::json
