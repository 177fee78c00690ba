import AssentCore

/// What to do with a step after the handler has seen it.
public enum StepAction: Hashable, Sendable {
    /// Send the answers. Fails when something that needs an answer has none.
    case next
    /// Send the answers, and what has none as it came.
    case nextUnanswered
    /// Give up: the user does not want this. When the step has a button for that, the server is told.
    case decline
}

/// The rules of walking a journey; no I/O.
struct JourneyRun {
    enum Move {
        case send(JourneyStep)
        case wait(seconds: Double, thenSend: JourneyStep)
        case sendDecline(JourneyStep)
        case stop(JourneyFailure)
    }

    let limits: JourneyLimits
    private var steps = 0
    private var waited = 0.0
    private var sent: JourneyStep?
    private var repetitions = 0

    init(limits: JourneyLimits) { self.limits = limits }

    mutating func move(_ step: JourneyStep, _ action: StepAction) -> Move {
        if action == .decline {
            return declined(step).map { .sendDecline($0) } ?? .stop(Self.declined)
        }
        if let suspended = step[SuspendedTextOutputCallback.self] {
            return .stop(
                JourneyFailure(
                    .suspended,
                    suspended.message.isEmpty ? "The journey goes on by a link that was sent." : suspended.message))
        }
        let unanswered = step.unanswered
        if action == .next, !unanswered.isEmpty {
            let list = unanswered.joined(separator: ", ")
            return .stop(JourneyFailure(.unanswered, "There is no answer to: \(list).", prompts: unanswered))
        }
        if let polling = step[PollingWaitCallback.self], !Self.hasPressed(step) {
            let seconds = min(max(Double(polling.waitTime) / 1000, 0.25), limits.longestWait)
            guard waited + seconds <= limits.allWaits else {
                return .stop(
                    JourneyFailure(.tooManySteps, "Nothing happened elsewhere for \(Int(limits.allWaits)) seconds."))
            }
            waited += seconds
            return .wait(seconds: seconds, thenSend: step)
        }
        guard steps < limits.steps else {
            return .stop(JourneyFailure(.tooManySteps, "The journey has more than \(limits.steps) steps."))
        }
        steps += 1
        repetitions = sent.map { Self.repeats($0, step) } == true ? repetitions + 1 : 1
        guard repetitions <= limits.sameAnswers else {
            return .stop(
                JourneyFailure(
                    .repeatedAnswers,
                    "The server asked the same again, and got the same answers \(limits.sameAnswers) times."))
        }
        sent = step
        return .send(step)
    }

    static let declined = JourneyFailure(.declined, "The user declined.")

    private func declined(_ step: JourneyStep) -> JourneyStep? {
        var step = step
        for (index, callback) in step.callbacks.enumerated() {
            if var confirmation = callback as? ConfirmationCallback, let value = confirmation.declineValue {
                confirmation.selectedValue = value
                step.callbacks[index] = confirmation
                return step
            }
            if var choice = callback as? ChoiceCallback, let value = choice.declineIndex {
                choice.selectedIndex = value
                step.callbacks[index] = choice
                return step
            }
        }
        return nil
    }

    private static func hasPressed(_ step: JourneyStep) -> Bool {
        step.callbacks.contains { ($0 as? ConfirmationCallback)?.selectedValue != nil }
    }

    /// Whether `step` is the step that was sent, with the same answers. When something was typed, only what was asked
    /// counts, so that a page which adds "wrong password" is the same page; pages of buttons and texts are told apart
    /// by the texts.
    private static func repeats(_ sent: JourneyStep, _ step: JourneyStep) -> Bool {
        let all = { (step: JourneyStep) in step.callbacks.map(\.fields.json) }
        guard step.callbacks.contains(where: { $0.answers.contains { $0 != nil } }) else { return false }
        if all(sent) == all(step) { return sent.filled == step.filled }
        guard step.callbacks.contains(where: \.isTyped), sent.asksTheSame(as: step) else { return false }
        return answered(sent) == answered(step)
    }

    private static func answered(_ step: JourneyStep) -> [[JSONValue?]] {
        step.callbacks.filter { !$0.fields.inputNames.isEmpty }.map { $0.answers.map { $0?.json } }
    }
}
