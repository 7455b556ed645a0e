// JSON under a schema, straight into arrays: 32-byte hashes (JSON arrays of 32 numbers) and whole numbers, each at the place that
// the schema gives it, in whatever order an object's keys come. Nothing else of the text is kept.
//
// The schema is a program of integers; an element is the index where it begins:
//   OBJECT n, n x (name, name's length, element, hashes, numbers, required, flag)   places relative to the object's; numbers[flag] = 1
//                                                                                     where the key was there (flag -1: not kept)
//   ARRAY  count, element, hashes, numbers                                            exactly `count`; the steps of one
//   HASH
//   NUMBER largest, high half                                                         from 0
//   SKIP                                                                              anything
//   STRING hashes                                                                     its bytes as far as they go; numbers[0] = length
//   TAGGED n, n x (name, name's length, element)                                      an object with exactly one key; numbers[0] = which
//   BASE64 element                                                                    a string that holds a document
//   LIST   largest count, element, hashes, numbers, flag, first hash, first number    numbers[flag] = how many; the steps of one
#include <cstdio>
#include <cstring>
#include <vector>

#include "../abi/abi.hpp"
#include "source.hpp"

namespace {

using namespace cuzk;
using namespace cuzk::json;

enum Kind : std::int32_t { OBJECT, ARRAY, HASH, NUMBER, SKIP, STRING, TAGGED, BASE64, LIST };

constexpr int HASH_BYTES = 32, LONGEST_KEY = 128, DEEPEST = 64;
constexpr int OBJECT_FIELD = 7, TAG_FIELD = 3;

struct Arrays {
    std::uint8_t* hashes;
    std::uint64_t n_hashes;
    std::uint64_t* numbers;
    std::uint64_t n_numbers;
};

class Reader {
  public:
    Reader(const std::int32_t* program, const char* names, const Arrays& out) : program_(program), names_(names), out_(out) {}

    void document(Source& source, std::int32_t element, std::size_t h, std::size_t n) {
        Source* outer = source_;
        source_ = &source;
        try {
            value(element, h, n);
            if (next() >= 0) fail("something follows the end of the document");
        } catch (const Malformed& malformed) {
            throw fault(malformed.message);  // here the source that knows where it is still exists
        }
        source_ = outer;
    }

  private:
    Fault fault(const std::string& message) const {
        std::string path;
        for (const Step& step : steps_) {
            if (step.name)
                path += (path.empty() ? "" : ".") + std::string(step.name, step.length);
            else
                path += "[" + std::to_string(step.index) + "]";
        }
        return {path, message, source_->file_offset(), source_->embedded() ? source_->offset() : -1};
    }

    struct Step {
        const char* name;
        std::size_t length;
        std::size_t index;
    };

    [[noreturn]] static void fail(std::string message) { throw Malformed{std::move(message)}; }

    // The next character that is not white space, not taken.
    int next() {
        for (;;) {
            const int c = source_->peek();
            if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
            source_->at++;
        }
    }

    static std::string shown(int c) {
        if (c < 0) return "the end of the text";
        if (c > 0x20 && c < 0x7f) return std::string("'") + static_cast<char>(c) + "'";
        char text[16];
        std::snprintf(text, sizeof text, "byte 0x%02x", static_cast<unsigned>(c));
        return text;
    }

    void expect(char wanted, const char* what) {
        const int c = next();
        if (c != wanted) fail(std::string(what) + " is needed here, not " + shown(c));
        source_->at++;
    }

    // Behind a value: true if another one follows, false at `close`.
    bool another(char close) {
        const int c = next();
        if (c != ',' && c != close) fail(std::string("',' or '") + close + "' is needed here, not " + shown(c));
        source_->at++;
        return c == ',';
    }

    void place(std::size_t h, std::size_t hashes, std::size_t n, std::size_t numbers) const {
        if (h + hashes > out_.n_hashes || n + numbers > out_.n_numbers) fail("more values than the text can hold");
    }

    void value(std::int32_t element, std::size_t h, std::size_t n) {
        const std::int32_t* e = program_ + element;
        switch (e[0]) {
            case OBJECT: return object(e, h, n);
            case ARRAY: return array(e, h, n);
            case HASH: return hash(h);
            case NUMBER:
                place(0, 0, n, 1);
                out_.numbers[n] = number(static_cast<std::uint32_t>(e[1]) | static_cast<std::uint64_t>(static_cast<std::uint32_t>(e[2])) << 32);
                return;
            case SKIP: return skip(0);
            case STRING: return string(h, static_cast<std::size_t>(e[1]), n);
            case TAGGED: return tagged(e, h, n);
            case BASE64: {
                expect('"', "a string (base64)");
                Base64 inner(*source_);
                return document(inner, e[1], h, n);
            }
            case LIST: return list(e, n);
        }
        fail("a fault in the schema");
    }

    void object(const std::int32_t* e, std::size_t h, std::size_t n) {
        expect('{', "an object");
        const std::int32_t fields = e[1];
        std::uint64_t seen = 0;
        if (next() == '}') {
            source_->at++;
        } else {
            do {
                const std::int32_t found = key(e + 2, fields, OBJECT_FIELD);
                if (found < 0) {
                    skip(0);
                    continue;
                }
                const std::int32_t* f = e + 2 + OBJECT_FIELD * found;
                steps_.push_back({names_ + f[0], static_cast<std::size_t>(f[1]), 0});
                if (seen >> found & 1) fail("the key is there twice");
                seen |= std::uint64_t{1} << found;
                value(f[2], h + static_cast<std::size_t>(f[3]), n + static_cast<std::size_t>(f[4]));
                if (f[6] >= 0) out_.numbers[f[6]] = 1;
                steps_.pop_back();
            } while (another('}'));
        }
        for (std::int32_t i = 0; i < fields; i++) {
            const std::int32_t* f = e + 2 + OBJECT_FIELD * i;
            if (f[5] && !(seen >> i & 1)) {
                steps_.push_back({names_ + f[0], static_cast<std::size_t>(f[1]), 0});
                fail("missing");
            }
        }
    }

    void tagged(const std::int32_t* e, std::size_t h, std::size_t n) {
        expect('{', "an object with one key");
        if (next() == '}') fail("an object with one key is needed, this one is empty");
        const std::int32_t found = key(e + 2, e[1], TAG_FIELD);
        if (found < 0) fail("unknown key \"" + key_ + "\"");
        const std::int32_t* f = e + 2 + TAG_FIELD * found;
        place(0, 0, n, 1);
        out_.numbers[n] = static_cast<std::uint64_t>(found);
        steps_.push_back({names_ + f[0], static_cast<std::size_t>(f[1]), 0});
        value(f[2], h, n);
        steps_.pop_back();
        if (another('}')) fail("an object with exactly one key is needed, this one has more");
    }

    void array(const std::int32_t* e, std::size_t h, std::size_t n) {
        const auto count = static_cast<std::size_t>(e[1]);
        const auto got = items([&](std::size_t i) {
            if (i >= count) fail("more than " + std::to_string(count) + " elements");
            value(e[2], h + i * static_cast<std::size_t>(e[3]), n + i * static_cast<std::size_t>(e[4]));
        });
        if (got != count) fail(std::to_string(got) + " elements, not " + std::to_string(count));
    }

    void list(const std::int32_t* e, std::size_t) {
        const auto most = static_cast<std::size_t>(e[1]);
        const auto hashes = static_cast<std::size_t>(e[3]), numbers = static_cast<std::size_t>(e[4]);
        const auto first_hash = static_cast<std::size_t>(e[6]), first_number = static_cast<std::size_t>(e[7]);
        out_.numbers[e[5]] = items([&](std::size_t i) {
            if (i >= most) fail("more than " + std::to_string(most) + " elements");
            value(e[2], first_hash + i * hashes, first_number + i * numbers);
        });
    }

    template <class One>
    std::size_t items(One&& one) {
        expect('[', "an array");
        if (next() == ']') {
            source_->at++;
            return 0;
        }
        std::size_t i = 0;
        do {
            steps_.push_back({nullptr, 0, i});
            one(i++);
            steps_.pop_back();
        } while (another(']'));
        return i;
    }

    // Which of `count` names the next key is, or -1; the colon is taken, too.
    std::int32_t key(const std::int32_t* fields, std::int32_t count, int step) {
        expect('"', "a key");
        read_string(key_, LONGEST_KEY);
        expect(':', "':'");
        for (std::int32_t i = 0; i < count; i++) {
            const std::int32_t* f = fields + step * i;
            if (key_.size() == static_cast<std::size_t>(f[1]) && !std::memcmp(key_.data(), names_ + f[0], key_.size())) return i;
        }
        return -1;
    }

    // Behind the opening quote: at most `most` bytes are kept (of keys and names; more of them than that is another name).
    std::size_t read_string(std::string& to, std::size_t most) {
        to.clear();
        std::size_t length = 0;
        auto put = [&](unsigned code) {
            length++;
            if (to.size() < most) to.push_back(static_cast<char>(code));
        };
        for (;;) {
            int c = source_->take();
            if (c < 0) fail("the text ends inside a string");
            if (c == '"') return length;
            if (c < 0x20) fail("a control character inside a string");
            if (c != '\\') {
                put(static_cast<unsigned>(c));
                continue;
            }
            c = source_->take();
            static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
            const char* known = c > 0 ? std::strchr(from, c) : nullptr;
            if (known) {
                put(static_cast<unsigned char>(into[known - from]));
            } else if (c == 'u') {
                unsigned code = 0;
                for (int i = 0; i < 4; i++) {
                    const int digit = source_->take(), low = digit | 0x20;
                    const bool decimal = digit >= '0' && digit <= '9';
                    if (!decimal && !(low >= 'a' && low <= 'f')) fail("not four hexadecimal digits behind \\u");
                    code = code * 16 + static_cast<unsigned>(decimal ? digit - '0' : low - 'a' + 10);
                }
                put(code < 0x80 ? code : 0x80);  // no name that is looked for has another
            } else {
                fail("an unknown escape inside a string");
            }
        }
    }

    void string(std::size_t h, std::size_t hashes, std::size_t n) {
        expect('"', "a string");
        place(h, hashes, n, 1);
        std::string text;
        out_.numbers[n] = read_string(text, hashes * HASH_BYTES);
        std::memcpy(out_.hashes + h * HASH_BYTES, text.data(), text.size());
    }

    std::uint64_t number(std::uint64_t largest) {
        int c = next();
        if (c == '-') fail("a number from 0 on is needed, not a negative one");
        if (c < '0' || c > '9') fail("a number is needed here, not " + shown(c));
        std::uint64_t x = 0;
        int digits = 0;
        bool zero_first = c == '0', over = false;
        while ((c = source_->peek()) >= '0' && c <= '9') {
            source_->at++;
            const auto digit = static_cast<std::uint64_t>(c - '0');
            over |= x > (UINT64_MAX - digit) / 10;
            x = x * 10 + digit;
            digits++;
        }
        if (c == '.' || c == 'e' || c == 'E') fail("a whole number is needed");
        if (zero_first && digits > 1) fail("a number that begins with 0");
        if (over || x > largest) fail("a number above " + std::to_string(largest));
        return x;
    }

    void hash(std::size_t h) {
        place(h, 1, 0, 0);
        std::uint8_t* to = out_.hashes + h * HASH_BYTES;
        next();
        if (!plain_hash(to)) {
            const auto got = items([&](std::size_t i) {
                const std::uint64_t x = number(255);
                if (i < HASH_BYTES) to[i] = static_cast<std::uint8_t>(x);
            });
            if (got != HASH_BYTES) fail(std::to_string(got) + " numbers, not 32");
        }
    }

    // The usual form: no white space, all inside the window. Leaves everything as it was if it is another one.
    bool plain_hash(std::uint8_t* to) {
        const std::uint8_t* p = source_->at;
        if (source_->end - p < 2 + 4 * HASH_BYTES || *p++ != '[') return false;
        for (int i = 0; i < HASH_BYTES; i++) {
            unsigned x = static_cast<unsigned>(*p++) - '0';
            if (x > 9) return false;
            unsigned d = static_cast<unsigned>(*p) - '0';
            if (d <= 9 && x) {
                x = 10 * x + d;
                d = static_cast<unsigned>(*++p) - '0';
                if (d <= 9) {
                    x = 10 * x + d;
                    p++;
                }
            }
            if (x > 255 || *p++ != (i < HASH_BYTES - 1 ? ',' : ']')) return false;
            to[i] = static_cast<std::uint8_t>(x);
        }
        source_->at = p;
        return true;
    }

    void skip(int depth) {
        if (depth > DEEPEST) fail("nested deeper than " + std::to_string(DEEPEST));
        const int c = next();
        if (c == '"') {
            source_->at++;
            read_string(skipped_, 0);
        } else if (c == '[') {
            items([&](std::size_t) { skip(depth + 1); });
        } else if (c == '{') {
            source_->at++;
            if (next() == '}') {
                source_->at++;
                return;
            }
            do {
                expect('"', "a key");
                read_string(skipped_, 0);
                expect(':', "':'");
                skip(depth + 1);
            } while (another('}'));
        } else if (c == '-' || (c >= '0' && c <= '9')) {
            skip_number();
        } else {
            word(c);
        }
    }

    std::size_t skip_digits() {
        std::size_t n = 0;
        for (int c; (c = source_->peek()) >= '0' && c <= '9'; n++) source_->at++;
        return n;
    }

    void skip_number() {
        if (source_->peek() == '-') source_->at++;
        const bool zero = source_->peek() == '0';
        const std::size_t whole = skip_digits();
        if (!whole || (zero && whole > 1)) fail("not a number of JSON");
        if (source_->peek() == '.') {
            source_->at++;
            if (!skip_digits()) fail("not a number of JSON");
        }
        if ((source_->peek() | 0x20) == 'e') {
            source_->at++;
            if (source_->peek() == '+' || source_->peek() == '-') source_->at++;
            if (!skip_digits()) fail("not a number of JSON");
        }
    }

    void word(int first) {
        const char* wanted = first == 't' ? "true" : first == 'f' ? "false" : first == 'n' ? "null" : nullptr;
        if (!wanted) fail("a value is needed here, not " + shown(first));
        for (; *wanted; wanted++)
            if (source_->take() != *wanted) fail("neither true, false nor null");
    }

    const std::int32_t* program_;
    const char* names_;
    Arrays out_;
    Source* source_ = nullptr;
    std::vector<Step> steps_;
    std::string key_, skipped_;
};

void put_text(char* to, std::size_t size, const std::string& text) {
    const std::size_t n = std::min(size - 1, text.size());
    std::memcpy(to, text.data(), n);
    to[n] = 0;
}

struct Report {
    std::int64_t offset, inner;
    char path[496], message[512];
};

}  // namespace

// Reads `text` under the schema that begins at program[root]. 0, or 1 with `report` filled in (offset: byte of the text where reading
// stopped; inner: the same of an embedded document, or -1). The arrays must be zero where something may be absent.
CUZK_API std::int64_t cuzk_json_records(const std::uint8_t* text, std::uint64_t bytes, const std::int32_t* program, std::uint64_t root, const char* names,
                                        std::uint8_t* hashes, std::uint64_t n_hashes, std::uint64_t* numbers, std::uint64_t n_numbers,
                                        void* report) {
    return guarded([&]() -> std::int64_t {
        Reader reader(program, names, {hashes, n_hashes, numbers, n_numbers});
        Memory source(text, bytes);
        try {
            reader.document(source, static_cast<std::int32_t>(root), 0, 0);
            return DONE;
        } catch (const Fault& fault) {
            auto* to = static_cast<Report*>(report);
            to->offset = fault.offset;
            to->inner = fault.inner;
            put_text(to->path, sizeof to->path, fault.path);
            put_text(to->message, sizeof to->message, fault.message);
            return 1;
        }
    });
}
