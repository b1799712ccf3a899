// Manual pages and completion: made from the declarations of commands and options, so that nothing is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "programs/krigtune/command.h"

namespace krigtune::manual_test {
namespace {

using ::testing::HasSubstr;

TEST(Manual, ExplainsEveryOptionOfEveryCommand) {
  const std::vector<manual::Page> pages = cli::manual_pages();
  ASSERT_EQ(pages.size(), 1 + cli::commands().size());
  for (std::size_t i = 0; i < cli::commands().size(); ++i) {
    const cli::Command command = cli::commands()[i];
    const manual::Page& page = pages[i + 1];
    EXPECT_EQ(page.name, std::string("krigtune-") + command.name);
    const auto section = std::find_if(page.sections.begin(), page.sections.end(),
                                      [](const manual::Section& found) { return found.title == "OPTIONS"; });
    ASSERT_NE(section, page.sections.end()) << page.name;
    EXPECT_EQ(section->items.size(), cli::options_of(command).options().size()) << page.name;
    for (const manual::Item& item : section->items) {
      EXPECT_THAT(item.term, HasSubstr("--")) << page.name;
      EXPECT_NE(item.meaning, "") << page.name << " " << item.term;
    }
  }
}

TEST(Manual, NamesTheVariableOfAnOption) {
  std::string tune;
  for (const manual::Page& page : cli::manual_pages()) {
    if (page.name == "krigtune-tune") tune = to_roff(page, "krigtune 1");
  }
  EXPECT_THAT(tune, HasSubstr(".TH KRIGTUNE\\-TUNE 1 \"\" \"krigtune 1\" \"User Commands\"\n"));
  EXPECT_THAT(tune, HasSubstr("\\fB\\-\\-trials\\fR \\fIN\\fR\n"));
  EXPECT_THAT(tune, HasSubstr("also KRIGTUNE_TRIALS\n"));
  EXPECT_THAT(tune, HasSubstr("\\fBkrigtune\\-watch\\fR(1)"));
}

TEST(Manual, WritesWhatRoffWouldTakeForAnInstruction) {
  const manual::Page page{"a-b", "c", "a-b FILE", {{"TEXT", ".TH no\n'no\nC:\\dir\n\n  as it is\nagain"}}, {}};
  EXPECT_EQ(to_roff(page, "a 1"),
            ".TH A\\-B 1 \"\" \"a 1\" \"User Commands\"\n.nh\n.ad l\n"
            ".SH NAME\na\\-b \\- c\n"
            ".SH SYNOPSIS\n\\fBa\\-b\\fR \\fIFILE\\fR\n"
            ".SH TEXT\n\\&.TH no\n\\&'no\nC:\\edir\n.PP\n.RS\n.nf\n  as it is\n.fi\n.RE\nagain\n");
}

TEST(Manual, PutsTheLetterOfAnOptionFirst) {
  EXPECT_EQ(manual::option_term('q', "quiet", ""), "-q, --quiet");
  EXPECT_EQ(manual::option_term('\0', "out", "DIR"), "--out DIR");
}

TEST(Completion, KnowsEveryCommandAndOption) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Said said = run_krigtune({"completion", shell});
    ASSERT_EQ(said.code, 0) << said.err;
    for (const cli::Command& command : cli::commands()) {
      EXPECT_THAT(said.out, HasSubstr(command.name)) << shell;
      const auto options = cli::options_of(command);
      for (const auto& option : options.options()) EXPECT_THAT(said.out, HasSubstr(option->long_name())) << shell;
    }
    EXPECT_THAT(said.out, HasSubstr("bayes")) << shell;
  }
}

TEST(Completion, RefusesAShellThatItDoesNotKnow) {
  const Said said = run_krigtune({"completion", "bsh"});
  EXPECT_EQ(said.code, 2);
  EXPECT_EQ(said.out, "");
  EXPECT_THAT(said.err, HasSubstr("the shell 'bsh' is not known; did you mean 'bash'?"));
  EXPECT_EQ(lines_in(said.err), 1U);
}

}  // namespace
}  // namespace krigtune::manual_test
