import AssentCore
import AssentServer
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("An enrolment of an installation that is interrupted before the server has its digits")
struct InterruptedEnrolmentTests {
    private static let pin = "0042"

    @Test("A login with the PIN, or with nothing typed, says by which command the enrolment goes on, and works then")
    func login() async throws {
        try await RequestKindsTests.run(editing: RequestKindsTests.remembering) { newcomer in
            for (line, answers) in [
                ("assent register --config app.yaml --token-file token.txt", []), ("assent login", try newcomer.signIn),
            ] {
                let result = try await newcomer.type(line, answers)
                try #require(result.status == 0, "\(line): \(result.errors)")
            }

            // It has its invite and asks for a PIN, and then there is no session with which to send the digits.
            newcomer.typist.catchUp()
            let enrolling = try newcomer.program.start(["device", "enroll", "--here"], typing: true)
            let hasEnded = Locked(false)
            let ending = Task {
                let result = await enrolling.result()
                hasEnded.withLock { $0 = true }
                return result
            }
            while try await newcomer.typist.world.rows("SELECT pid FROM signing_invites").isEmpty {
                try #require(hasEnded.withLock { !$0 }, "The enrolment has ended before it had its invite.")
                await Task.yield()
            }
            try #require(try await newcomer.type("assent logout").status == 0)
            try enrolling.type([Self.pin, Self.pin])
            try enrolling.endInput()
            let interrupted = await ending.value
            #expect(interrupted.status == 1, "\(interrupted)")
            let listed = try await newcomer.type("assent device list")
            try #require(listed.output.contains("UNCONFIRMED"), "\(listed)")

            let early = try await newcomer.type("assent login --pin", [Self.pin])
            #expect(early.status == 1 && early.errors.contains("Sign in first: assent login."), "\(early.errors)")
            #expect(early.errors.contains("run 'assent device enroll --here' again"), "\(early.errors)")
            #expect(early.errors.contains("interrupted") && !early.errors.contains("digits"), "\(early.errors)")
            let implicit = try await newcomer.type("assent request --as implicit GET /greeting")
            #expect(implicit.status == 1 && implicit.errors.contains("interrupted"), "\(implicit.errors)")
            #expect(
                implicit.errors.contains("'assent login', then run 'assent device enroll --here' again"),
                "\(implicit.errors)")

            // The next code is good already, and the server's clock stays near that of the program.
            let answers = try newcomer.signIn
            newcomer.typist.clock.advance(by: -30)
            let signedIn = try await newcomer.type("assent login", answers)
            #expect(signedIn.status == 0, "\(signedIn)")
            let enrolled = try await newcomer.type("assent device enroll --here")
            #expect(enrolled.status == 0 && enrolled.output.contains("remembers ana"), "\(enrolled)")
            let late = try await newcomer.type("assent login --pin", [Self.pin])
            #expect(late.status == 0 && late.output.contains("The PIN of ana is right"), "\(late)")
            let greeted = try await newcomer.type("assent request --as implicit GET /greeting")
            #expect(greeted.status == 0, "\(greeted)")
        }
    }
}
