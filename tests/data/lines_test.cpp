#include "data/lines.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "data/text_lines.h"
#include "tests/data/pairs/corpus_fixture.h"

namespace stretto::data {
namespace {

namespace fs = std::filesystem;

class LineFiles : public CorpusFixture {
 protected:
  static std::vector<std::string> all(const std::string& path) {
    const auto source = open_lines({path});
    std::vector<std::string> lines;
    for (std::string line; source->next(line);) lines.push_back(line);
    return lines;
  }

  static std::string gzip(const std::string& text) {
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string out(text.size() + 1024, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
  }

  static std::string zstd(const std::string& text) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
    return out;
  }

  std::string zip(const std::string& name,
                  const std::vector<std::pair<std::string, std::string>>& members) const {
    const std::string path = (folder_ / name).string();
    archive* out = archive_write_new();
    archive_write_set_format_zip(out);
    archive_write_open_filename(out, path.c_str());
    for (const auto& [member, bytes] : members) {
      archive_entry* entry = archive_entry_new();
      archive_entry_set_pathname(entry, member.c_str());
      archive_entry_set_filetype(entry, member.ends_with('/') ? AE_IFDIR : AE_IFREG);
      archive_entry_set_perm(entry, 0644);
      archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
      archive_write_header(out, entry);
      archive_write_data(out, bytes.data(), bytes.size());
      archive_entry_free(entry);
    }
    archive_write_free(out);
    return path;
  }
};

using Strings = std::vector<std::string>;

TEST_F(LineFiles, AreCutAtNewlinesAlone) {
  EXPECT_EQ(all(write("a", "one\ntwo\r\nx\ry\n\nu\xE2\x80\xA8v\f\x0B w\nlast")),
            (Strings{"one", "two", "x\ry", "", "u\xE2\x80\xA8v\f\x0B w", "last"}));
  EXPECT_EQ(all(write("b", "")), Strings{});
  EXPECT_EQ(all(write("c", "\n\n")), (Strings{"", ""}));
}

TEST_F(LineFiles, LoseTheByteOrderMarkAtTheStartOnly) {
  EXPECT_EQ(all(write("a", "\xEF\xBB\xBFone\n\xEF\xBB\xBFtwo\n")),
            (Strings{"one", "\xEF\xBB\xBFtwo"}));
  EXPECT_EQ(all(write("b", "\xEF\xBB\xBF")), Strings{});
}

TEST_F(LineFiles, AreTheSameInEveryPacking) {
  std::string text;
  for (int i = 0; i < 60000; ++i) text += "line number " + std::to_string(i) + "\n";
  const Strings plain = all(write("a.txt", text));
  ASSERT_EQ(plain.size(), 60000u);
  EXPECT_EQ(all(write("a.gz", gzip(text))), plain);
  EXPECT_EQ(all(write("a.zst", zstd(text))), plain);
  EXPECT_EQ(all(zip("a.zip", {{"x/other.txt", "no\n"}, {"x/it.txt", text}}) + ":x/it.txt"), plain);
}

TEST_F(LineFiles, MayHaveSeveralCompressedParts) {
  const std::string padding(700, '\0');
  EXPECT_EQ(all(write("a.gz", gzip("one\ntw") + gzip("o\n") + padding)), (Strings{"one", "two"}));
  EXPECT_EQ(all(write("a.zst", zstd("one\ntw") + zstd("o\n"))), (Strings{"one", "two"}));
}

TEST_F(LineFiles, ThatAreDamagedOrCutOffAreErrors) {
  const std::string text = sentences(3000, 5);
  std::string gz = gzip(text), zst = zstd(text);
  for (const std::string& bytes : {gz.substr(0, gz.size() / 2), gz + "tail", std::string()}) {
    const std::string path = write("bad.gz", bytes);
    EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { all(path); }), path));
  }
  for (const std::string& bytes : {zst.substr(0, zst.size() / 2), zst + "tail", std::string()}) {
    const std::string path = write("bad.zst", bytes);
    EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { all(path); }), path));
  }
  const std::string path = write("bad.zip", "this is no archive");
  failure(ExitCode::kBadData, [&] { all(path + ":x"); });
}

TEST_F(LineFiles, ThatExpandBeyondReasonAreErrors) {
  const std::string text(size_t{1} << 20, 'x');
  ExpansionGuard guard("f.gz");
  for (int i = 0; i < 64; ++i) guard.take(text.data(), text.size(), 1000);  // 64 MiB are free
  EXPECT_NO_THROW(guard.take(text.data(), 200'000, 1000));
  const std::string said =
      failure(ExitCode::kBadData, [&] { guard.take(text.data(), 1000, 1000); });
  EXPECT_TRUE(contains(said, "f.gz")) << said;
}

TEST_F(LineFiles, AreExpandedLinesNotBytesAlone) {
  // A few kilobytes of an archive, tens of megabytes of text, and gigabytes once each line is held.
  const std::string lines(size_t{24} << 20, '\n');
  for (const std::string& path : {write("a.gz", gzip(lines)), write("a.zst", zstd(lines)),
                                  zip("a.zip", {{"it.txt", lines}}) + ":it.txt"}) {
    EXPECT_LT(fs::file_size(parse_input_path(path).file), size_t{64} << 10);
    LineReader reader(path);
    std::string_view line;
    EXPECT_TRUE(contains(failure(ExitCode::kBadData,
                                 [&] {
                                   while (reader.next(line)) {
                                   }
                                 }),
                         path));
    EXPECT_LT(reader.line_number(), 4'000'000);
  }
  EXPECT_EQ(all(write("short.gz", gzip(std::string(1'000'000, '\n')))).size(), 1'000'000u);
}

TEST_F(LineFiles, MustBeRegularFilesAndNobodyWaitsForAPipe) {
  ::alarm(120);
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& path : {pipe, fs::path("/dev/zero"), folder_}) {
    EXPECT_TRUE(contains(failure(ExitCode::kUsage, [&] { all(path); }), "not a regular file"));
  }
  ::alarm(0);
}

TEST_F(LineFiles, NamesAMissingZipMember) {
  const std::string path = zip("a.zip", {{"data/", ""}, {"data/train.en", "x\n"}});
  EXPECT_TRUE(contains(failure(ExitCode::kUsage, [&] { all(path + ":data/trian.en"); }),
                       "did you mean `data/train.en`"));
  EXPECT_TRUE(
      contains(failure(ExitCode::kUsage, [&] { all(path + ":zzzzzzzzzzzzzz"); }), "data/train.en"));
  failure(ExitCode::kUsage, [&] { all(path + ":data/"); });  // a folder
  failure(ExitCode::kUsage, [&] { all(path); });             // no member
}

TEST_F(LineFiles, ThatAreMissingAreNamed) {
  EXPECT_TRUE(contains(failure(ExitCode::kUsage, [&] { all(folder_ / "none.txt"); }), "none.txt"));
  EXPECT_TRUE(contains(failure(ExitCode::kUsage, [&] { all(folder_); }), "regular"));
}

TEST_F(LineFiles, WithNulBytesNameThePlace) {
  const std::string path = write("a", std::string("one\nt\0wo\n", 9));
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { all(path); }), path + ":2:2: a NUL byte"));
}

TEST_F(LineFiles, GoOnBehindALineThatIsRefused) {
  const std::string longest(static_cast<size_t>(kMaxLineBytes), 'x');
  LineReader reader(write(
      "bad", "a\n" + longest + "xy\n" + longest + "x\r\nb\n" + std::string("c\0\n", 3) + "d"));
  std::string_view line;
  std::string found;
  for (bool more = true; more;) {
    try {
      more = reader.next(line);
      if (more) found += std::to_string(reader.line_number()) + std::string(line);
      EXPECT_FALSE(reader.refused_long());
    } catch (const Error&) {
      found += reader.refused_long() ? "!" : "?";
    }
  }
  EXPECT_EQ(found, "1a!!4b?6d");
}

TEST_F(LineFiles, WhereCrAloneEndsLinesAreRefused) {
  for (const std::string& text : {std::string("one\rtwo\rthree"), std::string("one\rtwo\r"),
                                  std::string(400'000, 'x') + "\r" + std::string(400'000, 'y') +
                                      "\r" + std::string(400'000, 'z')}) {
    const std::string said = failure(ExitCode::kBadData, [&] { all(write("a", text)); });
    EXPECT_TRUE(contains(said, "lines end with CR alone")) << said;
    EXPECT_TRUE(contains(said, "tr '\\r' '\\n'")) << said;
  }
  EXPECT_EQ(all(write("b", "one\rtwo")), Strings{"one\rtwo"}) << "it may be text";
  EXPECT_EQ(all(write("c", "a\rb\rc\rd\n")), Strings{"a\rb\rc\rd"}) << "LF ends a line";
  const std::string crlf = std::string(1'000'001, 'x') + "\r\na\r\nb\r\n";
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { all(write("d", crlf)); }),
                       "this line has 1,000,00"));
}

TEST_F(LineFiles, WithALineOfAMegabyteNamePlaceAndLength) {
  const std::string longest(static_cast<size_t>(kMaxLineBytes), 'x');
  EXPECT_EQ(all(write("ok", "a\n" + longest + "\r\n" + longest)).size(), 3u);
  for (const std::string& end : {std::string(), std::string("\nnext\n")}) {
    const std::string path = write("bad", "a\n" + longest + "x" + end);
    const std::string said = failure(ExitCode::kBadData, [&] { all(path); });
    EXPECT_TRUE(contains(said, path + ":2: this line has 1,000,000 bytes")) << said;
  }
  const std::string path = write("huge", std::string(5'000'000, 'x'));
  EXPECT_TRUE(contains(failure(ExitCode::kBadData, [&] { all(path); }), "5,000,000 bytes"));
}

}  // namespace
}  // namespace stretto::data
