/// One thing that `assent doctor` looked at: how it is and, when it is wrong, what to do.
package struct Diagnosis: Sendable, Hashable {
    /// How the thing is.
    package enum Verdict: Sendable, Hashable {
        /// As it should be.
        case fine
        /// Worth knowing although nothing is wrong: a choice that somebody made, or something that could not be looked
        /// at.
        case note
        /// Wrong. The text says what to do.
        case problem
    }

    /// How it is.
    package let verdict: Verdict

    /// What was found and, for a problem, what to do. Never a secret.
    package let text: String

    /// A diagnosis.
    package init(_ verdict: Verdict, _ text: String) {
        self.verdict = verdict
        self.text = text
    }
}
