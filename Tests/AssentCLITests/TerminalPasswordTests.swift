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

    /// What an enrolment asks for a slot.
    private func question(_ slot: PasswordSlot, _ isNew: Bool, signsIn: Bool = false) throws -> String {
        let nobody = Pipe()
        try nobody.fileHandleForWriting.close()
        let input = TerminalInput(descriptor: nobody.fileHandleForReading.fileDescriptor)
        let password = TerminalPassword(
            console: Console(silent: true), prompt: Prompt(input: input), signsIn: signsIn)
        let request = SigningPasswordRequest(
            isNew: isNew, slot: slot, mode: .local,
            rules: PasswordRules(minLength: 4, maxLength: 12), issuerName: "Bank of Example")
        let unanswered = withExtendedLifetime(nobody) {
            #expect(throws: Prompt.NoTerminal.self) { try password.enrolling(request) }
        }
        return try #require(unanswered?.question)
    }

    @Test("A PIN that signs the user in, too, says so, and the other ones do not")
    func signsIn() throws {
        for isNew in [true, false] {
            #expect(try question(.signing, isNew, signsIn: true).contains("for signing in and approving"))
            #expect(try !question(.signing, isNew).contains("signing in"))
            #expect(try question(.otp, isNew, signsIn: true) == question(.otp, isNew))
        }
    }

    @Test("Each question says what the password is for: no two of an enrolment are alike")
    func questions() throws {
        var questions: Set<String> = []
        for slot in PasswordSlot.allCases {
            for isNew in [true, false] {
                let question = try question(slot, isNew)
                #expect(question.contains("Bank of Example"))
                questions.insert(question)
            }
        }
        #expect(questions.count == 2 * PasswordSlot.allCases.count)
        let uses = ["for reading transactions", "for signing", "for one-time codes"]
        for use in uses { #expect(questions.count { $0.contains(use) } == 2, "\(questions)") }
    }
}
