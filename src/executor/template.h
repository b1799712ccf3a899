#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "executor/batch_system.h"
#include "executor/executor.h"
#include "trial/executor.h"

namespace krigtune::executor {

/// Replaces {name} by the value of that name. Other braces stay.
std::string filled(const std::string& word, const std::map<std::string, std::string>& values);

/// Returns the scheduler whose commands the session gives. `clock` must outlive it.
std::unique_ptr<BatchSystem> make_template_system(const TemplateSpec& spec, const Clock& clock);

std::unique_ptr<trial::Executor> make_template_executor(const TemplateSpec& spec, const ExecutorJob& job);

}  // namespace krigtune::executor
