import AssentCore
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentSigning

@Suite("Asking for a PIN at the terminal")
struct TerminalPasswordTests {
    private let password = TerminalPassword(console: Console(silent: true))

    /// Tries that fail with these errors, one after the other, and succeed then.
    private func tries(_ failures: [SigningError]) async -> (count: Int, error: SigningError?) {
        var count = 0
        do {
            try await password.retrying {
                defer { count += 1 }
                if count < failures.count { throw failures[count] }
            }
            return (count, nil)
        } catch {
            return (count, error as? SigningError)
        }
    }

    @Test("After a wrong one it asks again, but not while the next try must wait: that is said with the time")
    func waits() async {
        let wrong = SigningError(.wrongPassword)
        var late = wrong
        (late.remaining, late.retryAfter) = (2, 30)
        let again = await tries([wrong, wrong])
        #expect(again.count == 3 && again.error == nil)
        let stopped = await tries([wrong, late, wrong])
        #expect(stopped.count == 2 && stopped.error?.notes == ["next try in 30 s", "tries left: 2"])
        let locked = await tries([SigningError(.passwordLocked)])
        #expect(locked.count == 1 && locked.error == SigningError(.passwordLocked))
        #expect(await tries(Array(repeating: wrong, count: 9)).count == 5)
    }

    @Test("Each question says what the password is for: no two of an enrolment are alike")
    func questions() throws {
        let rules = SigningPasswordRules(PasswordRules(minLength: 4, maxLength: 12))
        var questions: Set<String> = []
        for slot in PasswordSlot.allCases {
            for isNew in [true, false] {
                let nobody = Pipe()
                try nobody.fileHandleForWriting.close()
                let input = TerminalInput(descriptor: nobody.fileHandleForReading.fileDescriptor)
                let password = TerminalPassword(console: Console(silent: true), prompt: Prompt(input: input))
                let request = SigningPasswordRequest(
                    isNew: isNew, slot: slot, mode: .local, rules: rules, issuerName: "Bank of Example")
                let unanswered = withExtendedLifetime(nobody) {
                    #expect(throws: Prompt.NoTerminal.self) { try password.enrolling(request) }
                }
                let question = try #require(unanswered?.question)
                #expect(question.contains("Bank of Example"))
                questions.insert(question)
            }
        }
        #expect(questions.count == 2 * PasswordSlot.allCases.count)
        let uses = ["for reading transactions", "for signing", "for one-time codes"]
        for use in uses { #expect(questions.count { $0.contains(use) } == 2, "\(questions)") }
    }
}
