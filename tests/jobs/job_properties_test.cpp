// Properties of the sessions of all golden commands and of parts of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/error.h"
#include "core/text.h"
#include "jobs/recipe_cases.h"
#include "jobs/session/job_session.h"
#include "space/parallel_layout.h"
#include "space/well_known.h"

namespace krigtune::jobs {
namespace {

JobRequest request_of(const RecipeCase& one, const Recipe& recipe, std::vector<std::string> words) {
  JobRequest request;
  request.command = std::move(words);
  request.recipe = recipe.name;
  request.directory = one.directory();
  if (recipe.measure.empty()) request.metric = "tok/s ([0-9.]+)";
  request.find_gpus = [] { return workload::NodeGpus{}; };
  return request;
}

// Calls f(recipe, case) for all golden commands that a recipe tunes by itself.
template <class F>
void for_each_case(F f) {
  for (const Recipe& recipe : shipped_recipes()) {
    if (!recipe.instead.empty() || recipe.parameters.empty()) continue;
    const Json cases = cases_of(recipe.name);
    for (const Json& json : cases) f(recipe, RecipeCase(json));
  }
}

std::int64_t sequences(const session::Session& session, const space::Configuration& configuration,
                       const space::Configuration& own) {
  const auto count = [&](const char* name) { return configuration.integer(name, own.integer(name, 1)); };
  space::Configuration split = own;
  for (const auto& [name, value] : configuration) split.set(name, value);
  const std::int64_t dp = space::data_parallel_ranks(session.cluster.ranks(), split).value_or(0);
  return space::sequences_of_step(count(space::kMicroBatch), dp, count(space::kAccumulation));
}

TEST(JobProperties, NoConfigurationChangesTheSequencesOfAStep) {
  int looked_at = 0;
  for_each_case([&](const Recipe& recipe, const RecipeCase& one) {
    const RecipeJob job = read_job(recipe, one.inputs());
    const OwnValues own = own_values(recipe, job);
    if (!own.train_batch_size || !job.command.ranks) return;
    std::optional<JobSession> made;
    try {
      made = session_of_job(request_of(one, recipe, one.argv()));
    } catch (const UserError&) {
      return;  // nothing to vary: tested elsewhere
    }
    const bool can_keep = recipe.find(space::kAccumulation) != nullptr || !recipe.train_batch_size.places.empty();
    if (!can_keep || made->session.cluster.ranks() != *job.command.ranks) return;
    int seen = 0;
    made->session.space.for_each([&](const space::Configuration& configuration) {
      // Without a place for it, the accumulation follows from the batch that the job gets.
      const bool follows = !configuration.has(space::kAccumulation) && !recipe.train_batch_size.places.empty();
      const std::int64_t step = sequences(made->session, configuration, own.configuration);
      if (follows) {
        EXPECT_EQ(*own.train_batch_size %
                      std::max<std::int64_t>(
                          1, step / configuration.integer(space::kAccumulation,
                                                          own.configuration.integer(space::kAccumulation, 1))),
                  0)
            << recipe.name << ": " << one.json().at("what") << ", " << configuration.text();
      } else {
        EXPECT_EQ(step, *own.train_batch_size)
            << recipe.name << ": " << one.json().at("what") << ", " << configuration.text();
      }
      ++looked_at;
      return ++seen < 2000;
    });
  });
  EXPECT_GT(looked_at, 1000);
}

// A session that a recipe writes must be one that its reader accepts, whatever optional flags a command leaves out.
TEST(JobProperties, EverySubsetOfFlagsGivesASessionThatCanBeRead) {
  std::mt19937 random(47);
  int written = 0;
  for_each_case([&](const Recipe& recipe, const RecipeCase& one) {
    const std::vector<std::string> all = one.argv();
    const std::size_t script = read_command(all).script;
    for (int round = 0; round < 12; ++round) {
      std::vector<std::string> words(all.begin(),
                                     all.begin() + static_cast<std::ptrdiff_t>(std::min(script + 1, all.size())));
      bool keeps = true;
      for (std::size_t i = script + 1; i < all.size(); ++i) {
        if (all[i].starts_with("--")) keeps = random() % 3 != 0;
        if (keeps) words.push_back(all[i]);
      }
      std::optional<WrittenSession> made;
      try {
        made = written_session(request_of(one, recipe, words));
      } catch (const UserError&) {
        continue;  // what is left is no such job, or has nothing to vary
      }
      ++written;
      EXPECT_NO_THROW(session::read_session(made->json, "the session", one.directory()))
          << recipe.name << ": " << join(words, " ") << "\n"
          << made->json.dump(1);
    }
  });
  EXPECT_GT(written, 100);
}

}  // namespace
}  // namespace krigtune::jobs
