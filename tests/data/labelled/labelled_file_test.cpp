#include "data/labelled/labelled_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/data/memory_stream.h"

namespace stretto::data {
namespace {

LabelledReader open(const std::string& name, const std::string& text,
                    const LabelledColumns& columns) {
  return {std::make_unique<testing::MemoryStream>(text), name, columns};
}

std::vector<LabelledRow> rows_of(const std::string& name, const std::string& text,
                                 const LabelledColumns& columns = {}) {
  auto reader = open(name, text, columns);
  std::vector<LabelledRow> rows;
  for (LabelledRow row; reader.next(row);) rows.push_back(row);
  return rows;
}

Error refusal(ExitCode code, const std::string& name, const std::string& text,
              const LabelledColumns& columns = {}) {
  return testing::failure(code, [&] { rows_of(name, text, columns); });
}

using Labelled = std::vector<std::string>;

TEST(LabelledFile, ReadsColumnsByNameInAnyOrder) {
  const auto rows = rows_of("a.tsv", "label\tidx\ttext\n1\t0\t \"so\" good\n0\t1\tbad\n");
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].text, " \"so\" good");
  EXPECT_EQ(rows[0].text2, "");
  EXPECT_EQ(rows[0].labels, Labelled{"1"});
  EXPECT_EQ(rows[0].line, 2);
  EXPECT_EQ(rows[1].text, "bad");
}

TEST(LabelledFile, ReadsPairsByNumberWithoutHeader) {
  const auto rows = rows_of("a.tsv", "yes\tone\ttwo\nno\tthree\tfour",
                            {.text = "2", .text2 = "3", .label = "1", .header = false});
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].line, 1);
  EXPECT_EQ(rows[1].text, "three");
  EXPECT_EQ(rows[1].text2, "four");
  EXPECT_EQ(rows[1].labels, Labelled{"no"});
}

TEST(LabelledFile, TakesANameForANameBeforeANumber) {
  const auto rows = rows_of("a.tsv", "2\tlabel\n3\tx\n", {.text = "2"});
  EXPECT_EQ(rows[0].text, "3");
  EXPECT_EQ(rows_of("a.tsv", "text\tlabel\nx\ty\n", {.text = "1", .label = "2"})[0].text, "x");
}

TEST(LabelledFile, AHeaderIsARowOnlyWhereItNamesNoColumn) {
  const LabelledColumns numbers{.text = "1", .label = "2"};
  auto reader = open("a.tsv", "good\tyes\nbad\tno\n", numbers);
  const auto header = reader.header_as_row();
  ASSERT_TRUE(header);
  EXPECT_EQ(header->labels, Labelled{"yes"});
  EXPECT_EQ(reader.place(*header), "a.tsv:1");
  const auto has_row = [](const std::string& text, const LabelledColumns& columns) {
    return open("a.tsv", text, columns).header_as_row().has_value();
  };
  EXPECT_FALSE(has_row("1\tyes\nbad\tno\n", numbers)) << "a name";
  EXPECT_FALSE(has_row("good\t \nbad\tno\n", numbers)) << "no label";
  EXPECT_FALSE(has_row("", numbers));
  EXPECT_FALSE(has_row("text\tyes\nbad\tno\n", {.label = "2"}));
  EXPECT_FALSE(has_row("good\tyes\n", {.text = "1", .label = "2", .header = false}));
  EXPECT_FALSE(has_row("good\tyes\nbad\tno\n", {.text = "1", .label = ""}));
  EXPECT_FALSE(open("a.jsonl", "{\"1\": \"a\", \"2\": \"b\"}\n", numbers).header_as_row());
}

TEST(LabelledFile, LabelsOfAHeaderAreReadAsThoseOfRows) {
  const auto header = [](const std::string& text, LabelledColumns columns) {
    columns.text = "1";
    columns.label = "2";
    return open("a.tsv", text + "\nbad\t1\n", columns).header_as_row();
  };
  EXPECT_EQ(header("good\ta:x,b", {.label_separator = ",", .label_until = ":"})->labels,
            (Labelled{"a", "b"}));
  EXPECT_EQ(header("good\t\xE9", {.encoding = Encoding::kLatin1})->labels, Labelled{"é"});
  EXPECT_TRUE(header("good\t\xE9", {})) << "is refused where it is read as a row";
  const auto number = header("good\t3.5", {.kind = LabelKind::kNumber});
  ASSERT_TRUE(number);
  EXPECT_EQ(number->value, 3.5);
  EXPECT_FALSE(header("sentence\tscore", {.kind = LabelKind::kNumber}));
}

TEST(LabelledFile, AnotherEncodingIsDecodedBeforeItIsParsed) {
  const LabelledColumns latin1{.text = "libell\xC3\xA9", .encoding = Encoding::kLatin1};
  for (const auto& rows :
       {rows_of("a.jsonl", "{\"libell\xE9\": \"caf\xE9\", \"label\": \"\\u00fc\"}\n", latin1),
        rows_of("a.csv", "libell\xE9,label\ncaf\xE9,\xFC\n", latin1)}) {
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].text, "café");
    EXPECT_EQ(rows[0].labels, Labelled{"ü"});
  }
}

TEST(LabelledFile, AColumnThatIsReadHasItsNameAlone) {
  const std::string twice = "text,other,other,text,label\na,b,c,d,x\n";
  const auto error = refusal(ExitCode::kUsage, "a.csv", twice);
  EXPECT_EQ(std::string(error.what()), "a.csv:1: columns 1 and 4 are both named `text`");
  EXPECT_EQ(error.advice(), "give the number of the one that is meant, or rename the other");
  EXPECT_EQ(rows_of("a.csv", twice, {.text = "4"})[0].text, "d");
  EXPECT_EQ(rows_of("a.csv", "other,text,other,label\nb,a,c,x\n")[0].text, "a");
  refusal(ExitCode::kUsage, "a.tsv", "text\tlabel\tlabel\na\tx\ty\n");
}

TEST(LabelledFile, DropsByteOrderMarkAndCarriageReturnsAndEmptyLines) {
  const auto rows = rows_of("a.tsv", "\xEF\xBB\xBFtext\tlabel\r\nx\ty\r\n\r\nz\tw\r\n\r\n");
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].labels, Labelled{"y"});
  EXPECT_EQ(rows[1].line, 4);
}

TEST(LabelledFile, ReadsMnli) {
  // The layout of its training file: 12 columns, labels last.
  const std::string header =
      "index\tpromptID\tpairID\tgenre\ts1_binary\ts2_binary\ts1_parse\ts2_parse\ts1\ts2\tlabel1\t"
      "gold_label\n";
  const auto rows =
      rows_of("train.tsv",
              header +
                  "0\t31193\t31193n\tgovernment\t( )\t( )\t(X)\t(X)\tA b.\tC d.\tneutral\tneutral\n"
                  "1\t31194\t31194n\tgovernment\t( )\t( )\t(X)\t(X)\tE.\tF.\tneutral\t-\n",
              {.text = "s1", .text2 = "s2", .label = "gold_label", .skipped_label = "-"});
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].text, "A b.");
  EXPECT_EQ(rows[0].text2, "C d.");
  EXPECT_EQ(rows[0].labels, Labelled{"neutral"});
}

TEST(LabelledFile, CountsSkippedRows) {
  auto reader = open("a.tsv", "text\tlabel\nx\t-\ny\t1\nz\t-\n", {.skipped_label = "-"});
  LabelledRow row;
  EXPECT_TRUE(reader.next(row));
  EXPECT_FALSE(reader.next(row));
  EXPECT_EQ(reader.num_skipped(), 2);
}

TEST(LabelledFile, ReadsQuotedFieldsOfCsv) {
  const auto rows = rows_of("a.csv",
                            "label,text\n"
                            "1,\"a, \"\"b\"\"\nsecond line\"\n"
                            "\"2\",a \"b\" c\n"
                            "3,\"\"\"\"\n");
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[0].text, "a, \"b\"\nsecond line");
  EXPECT_EQ(rows[0].line, 2);
  EXPECT_EQ(rows[1].text, "a \"b\" c");
  EXPECT_EQ(rows[1].labels, Labelled{"2"});
  EXPECT_EQ(rows[1].line, 4);
  EXPECT_EQ(rows[2].text, "\"");
}

TEST(LabelledFile, ReadsAJsonObjectALine) {
  const auto rows = rows_of("a.jsonl",
                            "{\"a\": \"x\\ny\", \"b\": \"\\u6771\", \"label\": 3}\n \n"
                            "{\"label\": true, \"b\": \"z\", \"a\": \"w\", \"more\": [1]}\n",
                            {.text = "a", .text2 = "b"});
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].text, "x\ny");
  EXPECT_EQ(rows[0].text2, "東");
  EXPECT_EQ(rows[0].labels, Labelled{"3"});
  EXPECT_EQ(rows[1].labels, Labelled{"true"});
  EXPECT_EQ(rows[1].line, 3);
}

TEST(LabelledFile, ReadsALabelBeforeEachText) {
  const LabelledColumns trec{
      .format = LabelledFormat::kLabelFirst, .label_until = ":", .encoding = Encoding::kLatin1};
  const auto rows =
      rows_of("train.label", "DESC:manner How did it caf\xE9 ?\nNUM:date When ?\n", trec);
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].labels, Labelled{"DESC"});
  EXPECT_EQ(rows[0].text, "How did it café ?");
  LabelledColumns fine = trec;
  fine.text2 = "ignored";
  fine.label_until = "";
  EXPECT_EQ(rows_of("train.label", "NUM:date When ?\n", fine)[0].labels, Labelled{"NUM:date"});
}

TEST(LabelledFile, ReadsNumbersForRegression) {
  const LabelledColumns numbers{.kind = LabelKind::kNumber};
  const auto rows = rows_of("a.tsv", "text\tlabel\nx\t4.5\ny\t-1e2\n", numbers);
  EXPECT_EQ(rows[0].value, 4.5);
  EXPECT_EQ(rows[1].value, -100);
  EXPECT_TRUE(rows[0].labels.empty());
  EXPECT_EQ(rows_of("a.jsonl", "{\"text\": \"x\", \"label\": 0.1}", numbers)[0].value, 0.1);
  for (const char* label : {"4,5", "", "x", "nan", "inf", "1e999", "1 2"}) {
    const Error error = refusal(ExitCode::kBadData, "a.tsv",
                                std::string("text\tlabel\nx\t1\ny\t") + label + "\n", numbers);
    EXPECT_EQ(std::string(error.what()),
              std::string("a.tsv:3: label `") + label + "` is not a finite number");
  }
}

TEST(LabelledFile, ReadsSeveralLabelsOfAText) {
  const LabelledColumns several{.label_separator = "; "};
  const auto rows = rows_of("a.tsv", "text\tlabel\nx\tred; green; red\ny\t\nz\tblue\n", several);
  EXPECT_EQ(rows[0].labels, (Labelled{"red", "green"}));
  EXPECT_TRUE(rows[1].labels.empty());
  EXPECT_EQ(rows[2].labels, Labelled{"blue"});
  EXPECT_EQ(rows_of("a.jsonl", R"({"text": "x", "label": ["b", 1]})", several)[0].labels,
            (Labelled{"b", "1"}));
  EXPECT_NE(
      std::string(
          refusal(ExitCode::kBadData, "a.jsonl", R"({"text": "x", "label": ["b", "c"]})").what())
          .find("a.jsonl:1: several labels"),
      std::string::npos);
}

TEST(LabelledFile, ReadsTextsWithoutLabels) {
  const auto rows = rows_of("a.tsv", "text\tother\nx\t\n", {.label = ""});
  EXPECT_EQ(rows[0].text, "x");
  EXPECT_TRUE(rows[0].labels.empty());
}

TEST(LabelledFile, ListsTheColumnsWhereOneIsMissing) {
  const Error named = refusal(ExitCode::kUsage, "a.tsv", "text\tlabels\nx\ty\n");
  EXPECT_EQ(std::string(named.what()), "a.tsv: there is no column `label`");
  EXPECT_EQ(named.advice(), "did you mean `labels`? there are text, labels");
  const Error number = refusal(ExitCode::kUsage, "a.tsv", "text\tlabel\nx\ty\n", {.text = "3"});
  EXPECT_EQ(number.advice(), "there are text, label");
  const Error unnamed =
      refusal(ExitCode::kUsage, "a.tsv", "x\ty\n", {.text = "text", .header = false});
  EXPECT_EQ(unnamed.advice(), "without a header, a column is a number from 1 to 2");
  const Error key = refusal(ExitCode::kBadData, "a.jsonl", "{\"text\": \"x\", \"lable\": 1}\n");
  EXPECT_EQ(std::string(key.what()), "a.jsonl:1: there is no `label`");
  EXPECT_EQ(key.advice(), "did you mean `lable`? there are lable, text");
}

TEST(LabelledFile, RefusesARowWithAnotherNumberOfFields) {
  EXPECT_EQ(
      std::string(refusal(ExitCode::kBadData, "a.tsv", "text\tlabel\nx\ty\nx\ty\tz\n").what()),
      "a.tsv:3: 3 fields, where the header has 2");
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.csv", "1,2\n1\n",
                                {.text = "1", .label = "2", .header = false})
                            .what()),
            "a.csv:2: 1 field, where the first row has 2");
}

TEST(LabelledFile, RefusesWrongQuotesOfCsvWithTheLineOfTheQuote) {
  EXPECT_EQ(
      std::string(refusal(ExitCode::kBadData, "a.csv", "text,label\na,1\n\"b,1\nc,1\n").what()),
      "a.csv:3: a quote opens and is never closed");
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.csv", "text,label\n\"b\"x,1\n").what()),
            "a.csv:2: text follows a closing quote");
  std::string endless = "text,label\n\"";
  for (int i = 0; i < 12; ++i) endless += std::string(100'000, 'x') + "\n";
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.csv", endless).what()),
            "a.csv:2: a quoted field has more than 999,999 bytes");
}

// What is left of a record that cannot be read is no record of its own.
TEST(LabelledFile, ABadLineWithinQuotesLosesItsRecordAndNoMore) {
  const LabelledColumns skip{.bad_samples = {.skips = true}};
  const auto texts = [&](const std::string& rows) {
    std::string all;
    for (const auto& row : rows_of("a.csv", "text,label\n" + rows, skip)) all += row.text + "|";
    return all;
  };
  const std::string nul("\0", 1), longest(1'100'000, 'x');
  for (const std::string& bad : {nul, longest}) {
    EXPECT_EQ(texts("aa,n\n\"first\nbad" + bad + "\nthird line\",z\ngood,s\n"), "aa|good|");
    EXPECT_EQ(texts("aa,n\n\"first\nbad" + bad + "\",z\ngood,s\n"), "aa|good|");
    EXPECT_EQ(texts("aa,n\n\"whole" + bad + "\",z\ngood,s\n"), "aa|good|");
    const std::string begins = "text,label\naa,n\n\"begins" + bad + "\nthird line\",z\ngood,s\n";
    EXPECT_NE(std::string(refusal(ExitCode::kBadData, "a.csv", begins, skip).what())
                  .find("a quoted field may go on behind it"),
              std::string::npos);
  }
  EXPECT_EQ(texts("\"a\" b,n\ngood,s\n"), "good|");
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.csv",
                                "text,label\n\"a\" b,\"line1\nline2\",q\ngood,s\n", skip)
                            .what()),
            "a.csv:2: text follows a closing quote, and more quotes behind it");
}

TEST(LabelledFile, RefusesFilesWithoutRows) {
  for (const char* text : {"", "text\tlabel\n", "text\tlabel\n\n\n"}) {
    EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.tsv", text).what()),
              "a.tsv: there are no rows");
  }
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.jsonl", "\n").what()),
            "a.jsonl: there are no rows");
}

TEST(LabelledFile, RefusesEmptyTextsAndMissingLabels) {
  for (const char* text : {"", " ", " \v"}) {
    EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.tsv",
                                  std::string("text\tlabel\n") + text + "\t1\n")
                              .what()),
              "a.tsv:2: an empty text");
  }
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.tsv", "text\tlabel\nx\t \n").what()),
            "a.tsv:2: no label");
  EXPECT_EQ(
      std::string(
          refusal(ExitCode::kBadData, "a.tsv", "text\tb\tlabel\nx\t\t1\n", {.text2 = "b"}).what()),
      "a.tsv:2: an empty text");
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.txt", "text\nx\n\n", {.label = ""}).what()),
            "a.txt:3: an empty text");
}

TEST(LabelledFile, RefusesWhatIsNotUtf8OrNotJson) {
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.tsv", "text\tlabel\nx\xE9\t1\n").what()),
            "a.tsv:2: not UTF-8");
  EXPECT_NE(std::string(refusal(ExitCode::kBadData, "a.jsonl", "{\"text\": \"\xE9\"}").what())
                .find("a.jsonl:1"),
            std::string::npos);
  EXPECT_NE(std::string(refusal(ExitCode::kBadData, "a.jsonl",
                                "{\"text\": \"x\", \"label\": 1}\n\n{\"text\" 1}\n")
                            .what())
                .find("a.jsonl:3:9: syntax error"),
            std::string::npos);
  EXPECT_EQ(
      std::string(
          refusal(ExitCode::kBadData, "a.jsonl", "\n{\"text\": \"x\", \"text\": \"y\"}\n").what()),
      "a.jsonl:2: key \"text\" stands twice in one object");
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.jsonl", "[1]\n").what()),
            "a.jsonl:1: must be an object, is array");
  EXPECT_EQ(
      std::string(refusal(ExitCode::kBadData, "a.jsonl", "{\"text\": 1, \"label\": 1}\n").what()),
      "a.jsonl:1: `text` must be a string, is number");
  EXPECT_NE(std::string(refusal(ExitCode::kBadData, "a.jsonl",
                                "{\"text\": " + std::string(100'000, '[') + "\n")
                            .what())
                .find("nested deeper"),
            std::string::npos);
}

TEST(LabelledFile, KnowsItsFormatByTheEndingOfItsName) {
  EXPECT_EQ(refusal(ExitCode::kUsage, "a.dat", "text\tlabel\nx\ty\n").code(), ExitCode::kUsage);
  EXPECT_EQ(rows_of("a.dat", "text,label\nx,y\n", {.format = LabelledFormat::kCsv}).size(), 1);
  const testing::TempDir folder;
  LabelledReader reader(folder.write("b.ndjson", "{\"text\":\"y\",\"label\":2}"), {});
  LabelledRow row;
  ASSERT_TRUE(reader.next(row));
  EXPECT_EQ(row.text, "y");
  EXPECT_FALSE(reader.next(row));
}

TEST(LabelledFile, NamesUpToTenBadRowsAtOnce) {
  const std::string bad = "text\tlabel\na\t1\nb\n\t1\nc\t\nd\t1\n";
  const Error error = refusal(ExitCode::kBadData, "a.tsv", bad);
  EXPECT_EQ(std::string(error.what()),
            "a.tsv:3: 1 field, where the header has 2; 2 more: 4: an empty text; 5: no "
            "label");
  EXPECT_NE(error.advice().find("data.bad_samples"), std::string::npos) << error.advice();
  std::string many = "text\tlabel\n";
  for (int i = 0; i < 30; ++i) many += "b\n";
  const Error ten = refusal(ExitCode::kBadData, "a.tsv", many);
  EXPECT_NE(std::string(ten.what()).find("at least 9 more"), std::string::npos);
  EXPECT_EQ(std::string(ten.what()).find("; 12: "), std::string::npos) << ten.what();
  // What makes the rest of the file unreadable comes behind them.
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.csv", "text,label\na\n\"b,1\nc,1\n").what()),
            "a.csv:2: 1 field, where the header has 2");
}

TEST(LabelledFile, LeavesOutBadRowsWhereTold) {
  const std::string text =
      "text\tlabel\na\t1\nb\n\t1\n\xFF\t1\nc\t2\n" + std::string("d\0\t1\n", 5) + "e\t1\n";
  BadSamples bad({.skips = true, .most = 4});
  auto reader = LabelledReader(std::make_unique<testing::MemoryStream>(text), "a.tsv", {}, &bad);
  std::vector<std::string> texts;
  for (LabelledRow row; reader.next(row);) texts.push_back(row.text + std::to_string(row.line));
  EXPECT_EQ(texts, (Labelled{"a2", "c6", "e8"}));
  EXPECT_EQ(bad.left_out().count, 4);
  EXPECT_EQ(
      bad.left_out().text(),
      "4 bad samples: a.tsv:3: 1 field, where the header has 2; 4: an empty text; 5: not UTF-8; "
      "7:2: a NUL byte, so this is not UTF-8 text");
  const LabelledColumns few{.bad_samples = {.skips = true, .most = 3}};
  EXPECT_NE(std::string(refusal(ExitCode::kBadData, "a.tsv", text, few).what())
                .find("more than data.max_bad_samples = 3"),
            std::string::npos);
  const LabelledColumns skip{.bad_samples = {.skips = true}};
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.tsv", "text\tlabel\nb\nb\n", skip).what()),
            "a.tsv: there are no rows but 2 bad samples");
  // A quote that stays open has taken the rest of the file: that is no fault of one row.
  refusal(ExitCode::kBadData, "a.csv", "text,label\na,1\n\"b,1\nc,1\n", skip);
  const auto rows = rows_of("a.jsonl",
                            "{\"text\": \"x\", \"label\": 1}\n{\"text\": 1}\n{\n"
                            "{\"text\": \"y\", \"label\": 2}\n",
                            skip);
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[1].line, 4);
}

TEST(LabelledFile, ReadsOtherSeparators) {
  const LabelledColumns semicolons{.separator = ";"};
  EXPECT_EQ(rows_of("a.csv", "text;label\n\"a;b, c\";1\n", semicolons)[0].text, "a;b, c");
  EXPECT_EQ(rows_of("a.tsv", "text|label\n\"a\tb|1\n", {.separator = "|"})[0].text, "\"a\tb");
  EXPECT_EQ(rows_of("a.csv", "text\tlabel\na,b\t1\n", {.separator = "\t"})[0].text, "a,b");
  EXPECT_EQ(
      refusal(ExitCode::kBadData, "a.tsv", "text;label\na\n", semicolons).advice(),
      "one `;` stands between two fields, and none within a text; data.format = \"csv\" reads "
      "quoted fields");
}

TEST(LabelledFile, AnswersAHeaderOfOneColumnWithItsSeparator) {
  const auto advice = [](const std::string& name, const std::string& header,
                         const LabelledColumns& columns = {}) {
    const Error error = refusal(ExitCode::kUsage, name, header + "\n", columns);
    EXPECT_NE(std::string(error.what()).find("its first line is one column: `"), std::string::npos)
        << error.what();
    return error.advice();
  };
  EXPECT_EQ(advice("a.tsv", "text;label"), "set data.separator = \";\"");
  EXPECT_EQ(advice("a.csv", "text|id|label"), "set data.separator = \"|\"");
  EXPECT_EQ(advice("a.csv", "text\tlabel"), "set data.separator = \"\\t\"");
  EXPECT_EQ(advice("a.tsv", "text,label"),
            "set data.separator = \",\", or data.format = \"csv\" where fields have quotes");
  EXPECT_EQ(advice("a.tsv", "a good film;1", {.text = "1", .label = "2", .header = false}),
            "set data.separator = \";\"");
  EXPECT_EQ(refusal(ExitCode::kUsage, "a.tsv", "sentence\nx\n").advice(), "there are sentence");
}

TEST(LabelledFile, RefusesLinesThatEndWithCrAlone) {
  const Error error = refusal(ExitCode::kBadData, "a.tsv", "text\tlabel\rx\t1\ry\t2\r");
  EXPECT_NE(std::string(error.what()).find("a.tsv: lines end with CR alone"), std::string::npos);
  EXPECT_NE(error.advice().find("tr '\\r' '\\n'"), std::string::npos) << error.advice();
}

TEST(LabelledFile, RefusesLabelsOfSeveralLines) {
  EXPECT_EQ(std::string(refusal(ExitCode::kBadData, "a.csv", "text,label\nx,\"a\nb\"\n").what()),
            "a.csv:2: label `a\\x0ab` has a tab or a line end");
  for (const char* label : {"a\\tb", "a\\nb", "a\\rb"}) {
    EXPECT_NE(std::string(refusal(ExitCode::kBadData, "a.jsonl",
                                  std::string("{\"text\": \"x\", \"label\": \"") + label + "\"}\n")
                              .what())
                  .find("has a tab or a line end"),
              std::string::npos);
  }
}

TEST(LabelledFile, SaysWhatToDoWithAKeyThatStandsTwice) {
  const Error error =
      refusal(ExitCode::kBadData, "a.jsonl", "{\"text\": \"x\", \"text\": \"y\", \"label\": 1}\n");
  EXPECT_NE(error.advice().find("in which each key stands once"), std::string::npos)
      << error.advice();
  EXPECT_EQ(error.advice().find("whole copy"), std::string::npos) << error.advice();
}

TEST(LabelledFile, NamesThePlaceOfARow) {
  auto reader = open("a.tsv", "text\tlabel\nx\ty\n", {});
  LabelledRow row;
  reader.next(row);
  EXPECT_EQ(reader.place(row), "a.tsv:2");
}

}  // namespace
}  // namespace stretto::data
