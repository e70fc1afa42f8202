#include "report/html_text.h"

#include <gtest/gtest.h>

namespace stretto::report {
namespace {

TEST(HtmlText, EscapesEveryCharacterThatMarkupKnows) {
  EXPECT_EQ(escape_html("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
  EXPECT_EQ(escape_html("żółw 日本 \u0085\r"), "żółw 日本 \uFFFD\uFFFD");
  EXPECT_EQ(escape_html("日本語", 2), "日…");
}

TEST(HtmlText, TellsTheWordsOfATomlFileApart) {
  EXPECT_EQ(highlight_toml("[run] # c\nseed = 1\n\"a b\" = 'x#y'\n"),
            "<span class=\"s\">[run] </span><span class=\"c\"># c</span>\n"
            "<span class=\"k\">seed</span> = <span class=\"n\">1</span>\n"
            "<span class=\"k\">&quot;a b&quot;</span> = <span class=\"v\">&#39;x#y&#39;</span>\n");
  EXPECT_EQ(highlight_toml("a = [\n  \"b\", # d\n  2]\ne = true"),
            "<span class=\"k\">a</span> = [\n  <span class=\"v\">&quot;b&quot;</span>, "
            "<span class=\"c\"># d</span>\n  <span class=\"n\">2</span>]\n"
            "<span class=\"k\">e</span> = <span class=\"n\">true</span>");
  EXPECT_EQ(highlight_toml("a = \"\"\"x\n[y]"),  // an open string must not hang or throw
            "<span class=\"k\">a</span> = <span class=\"v\">&quot;&quot;&quot;x\n[y]</span>");
}

}  // namespace
}  // namespace stretto::report
