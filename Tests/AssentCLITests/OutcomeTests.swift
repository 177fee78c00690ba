import Assent
import AssentConfiguration
import AssentCore
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI
@testable import AssentSigning

@Suite("The exit status says what kind of failure it was, and the message says what happened and what to do")
struct OutcomeTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let error: any AssentError
        let status: Outcome.Status
        let words: [String]

        init(_ error: any AssentError, _ status: Outcome.Status, _ words: String...) {
            self.error = error
            self.status = status
            self.words = words
        }

        var testDescription: String { "\(error) is \(status)" }
    }

    /// What a server says of a password, with what it counts.
    private static func signing(
        _ code: SigningError.Code, wait seconds: Int? = nil, left: Int? = nil, rule: PasswordRule? = nil
    ) -> SigningError {
        var error = SigningError(code)
        (error.retryAfter, error.remaining, error.rule) = (seconds, left, rule)
        return error
    }

    @Test(
        "Each error has its status and its words",
        arguments: [
            Row(
                JourneyError(status: 401, body: ["message": "Login failure"]), .refused,
                "The server refused: The sign-in failed. (status 401) Correct what was typed and try again.",
                "Its own words: Login failure"),
            Row(
                JourneyError(status: 400, body: ["message": "No Configuration found", "detail": ["errorCode": "105"]]),
                .refused, "no journey of that name", "Look at the names of the journey and of the realm."),
            Row(
                JourneyError(status: 401, body: ["message": "User not Active"]), .refused,
                "The account is locked or inactive.", "Ask an administrator"),
            Row(JourneyError(status: 401, body: [:]), .refused, "The server refused: ", "sign-in failed", "try again"),
            Row(
                JourneyError(status: 503, body: ["message": "m", "detail": ["reason": "outcomeUnknown"]]), .unknown,
                "The outcome is unknown: ", "Look what became of it"),
            Row(JourneyFailure(.declined, "No."), .refused, "You declined."),
            Row(JourneyFailure(.suspended, "a link was sent"), .failed, "The journey did not end: A link was sent."),
            Row(
                AuthorizationError(
                    .outcomeUnknown, "the connection ended", pending: .init(transactionID: "t", idempotencyKey: "k")),
                .unknown, "The outcome is unknown", "Do not repeat it", "--ask t:k"),
            Row(
                TokenError(.registrationRefused, "It is used up.", status: 401, oauthError: "invalid_token"), .refused,
                "The server refused: It is used up.", "[registrationRefused]"),
            Row(
                TokenError(.registrationUnknown, "The connection ended."), .unknown,
                "The outcome is unknown: The connection ended.", "the next try registers anew"),
            Row(
                ResourceError(
                    .fetchResource, .outcomeUnknown, "The connection ended.",
                    pending: .init(transactionID: "t", idempotencyKey: "k")),
                .unknown, "The outcome is unknown", "fetchResource 10105", "--ask t:k"),
            Row(
                ResourceError(.fetchResource, .userNotAuthenticated, "There are no tokens."), .failed,
                "Sign in first: assent login", "9010"),
            Row(
                ResourceError(.generic, .deviceDeregistered, "The server has ended it."), .failed,
                "assent register", "generic 9002"),
            Row(
                ResourceError(.fetchAnonymousResource, .scopeRefused, "Not all scopes."), .refused,
                "The server refused: Not all scopes.", "10001", "Ask for scopes that the app may have."),
            Row(
                ResourceError(.generic, .webLinkDisabled, "The server signs no browser in for this app."), .failed,
                "10023", "Ask the server's operator to list the page (webLinks) at the app"),
            Row(ResourceError(.generic, .actionCancelled, "The user declined."), .refused, "declined", "9006"),
            Row(
                ResourceError(.fetchResource, .hostRefused, "Not named."), .failed, "10101",
                "Name the host, its pins and what it gets"),
            Row(AuthorizationError(.declined, "You said no."), .refused, "You said no."),
            Row(AuthorizationError(.refused, "Again."), .refused, "Again."),
            Row(AuthorizationError(.approvalForAnotherRequest, "Another."), .refused, "Another."),
            Row(AuthorizationError(.untrustedAdvice, "Elsewhere."), .refused, "Elsewhere."),
            Row(AuthorizationError(.noSession, "no session", suggestion: "sign in"), .failed, "No session. Sign in."),
            Row(TokenError(.signInNeeded, "there are no tokens"), .failed, "Sign in first: assent login", "no tokens"),
            Row(TokenError(.authorizationRefused, "not you"), .refused, "The server refused: Not you."),
            Row(TokenError(.tokenRefused, "", status: 400), .failed, "without further explanation", "(status 400)"),
            Row(HTTPTransportError(.timedOut, "it took too long"), .failed, "It took too long."),
            Row(HTTPTransportError(.timedOut, "it took too long", mayHaveHadEffect: true), .unknown, "may have had"),
            Row(
                HTTPTransportError(.notPinned, "There are no pins for a.example."), .failed, "client.yaml",
                "pins: {<host>: [sha256/…, sha256/…]}", "[notPinned]"),
            Row(
                JourneyFailure(.transport, "No pins.", transportError: HTTPTransportError(.notPinned, "No pins.")),
                .failed, "client.yaml", "pins: {<host>: [sha256/…, sha256/…]}"),
            Row(
                ResourceError(
                    .fetchResource, .hostRefused, "No pins.", transportError: HTTPTransportError(.notPinned, "")),
                .failed, "client.yaml", "pins: {<host>: [sha256/…, sha256/…]}"),
            Row(
                SecretStoreError(.wrongKey, "The passphrase is wrong."), .failed, "The passphrase is wrong. [wrongKey]"),
            Row(KeyProviderError(.lockedOut, "Locked.", suggestion: "Wait."), .failed, "Locked. Wait. [lockedOut]"),
            Row(WireError(.malformed, "a header makes no sense"), .failed, "A header makes no sense."),
            // A wrong address, a wrong realm, no session.
            Row(
                JourneyError(status: 404, body: [:]), .refused, "no authentication service at the server's URL",
                "with its path, for example https://am.example.com/am, and not that of the gateway"),
            Row(
                JourneyError(status: 400, body: ["code": 400, "message": "Invalid realm, /x"]), .refused,
                "no realm of that name", "Look at the name of the realm"),
            Row(AuthorizationError(.noSession, "There is no session."), .failed, "no session. Sign in by a journey."),
            Row(SigningError(.notFound), .failed, "no issuer at this address", "the issuer's URL as it stands beside"),
            // How long to wait, what is left, and which rule.
            Row(
                signing(.passwordWait, wait: 90, left: 2), .failed,
                "The next try must wait. (next try in 90 s) (tries left: 2) [wait]"),
            Row(signing(.passwordWait, wait: 301), .failed, "(next try in 6 minutes)"),
            Row(signing(.invalidPassword, rule: .minimumLength(6)), .failed, "(It must have at least 6 characters.)"),
            Row(signing(.transactionFailed), .refused, "The transaction has failed. [tx_failed]"),
            // There is no command that asks for a container's status: what to type instead.
            Row(SigningError(.containerRevoked), .failed, "The container has ended.", "assent device remove"),
            Row(SigningError(.containerBlocked), .failed, "The container is blocked.", "Ask an administrator"),
            Row(SigningError(.containerSuspect), .failed, "may have been copied", "assent device renew"),
        ])
    func table(row: Row) {
        let outcome = Outcome(row.error)
        let text = outcome.lines.joined(separator: "\n")
        #expect(outcome.status == row.status, "\(text)")
        for words in row.words { #expect(text.contains(words), "\(text)") }
    }

    @Test("A sign-in that is needed is asked for once, and advice that says more is kept")
    func signInFirst() {
        let outcome = Outcome(TokenError(.signInNeeded, "Nobody is signed in."))
        #expect(outcome.lines == ["Sign in first: assent login. Nobody is signed in. [signInNeeded]"])
        let refused = ResourceError(.fetchResource, .userNotAuthenticated, "No.", suggestion: "Check the scopes.")
        #expect(Outcome(refused).lines.first?.contains("Check the scopes.") == true)
    }

    @Test(
        "An address, a key or a file at the beginning of an error is written as it is, a word with a capital letter",
        arguments: [
            ("localhost:8443 refused it", "localhost:8443 refused it."), ("am.bank.example is away", "am.bank."),
            ("localhost: no path leads to a trusted root", "localhost: no path leads to a trusted root."),
            ("publicURL is wrong", "publicURL is"), ("/k is missing", "/k is"), ("it failed", "It failed."),
            ("nothing.", "Nothing."), ("step-up is needed", "Step-up is"), ("a key is gone", "A key is"),
        ])
    func beginning(detail: String, shown: String) {
        let words = HTTPTransportError(.timedOut, detail).words
        #expect(words.hasPrefix(shown), "\(words)")
    }

    @Test("What somebody must put right is not tried again: a wrong key file, a token that is not there")
    func transient() {
        #expect(SecretStoreError(.busy, "").isTransient)
        for code in [SecretStoreError.Code.wrongKey, .keyUnavailable, .keyLost] {
            #expect(!SecretStoreError(code, "").isTransient, "\(code)")
        }
    }

    @Test("A command ends with these numbers, as scripts expect them")
    func numbers() async {
        let failures: [(any Error, Int32)] = [
            (SecretStoreError(.busy, "Busy."), 1), (JourneyError(status: 401, body: [:]), 2),
            (AuthorizationError(.outcomeUnknown, "Lost."), 3),
            (ConfigurationError(file: "client.yaml", line: 1, "is wrong"), 78),
            (Prompt.NoTerminal(question: "Password"), 1),
        ]
        for (failure, status) in failures {
            do {
                try await Outcome.run(Console(silent: true)) { throw failure }
                Issue.record("\(failure) must end the command")
            } catch {
                #expect("\(error)".contains("\(status)"), "\(error) for \(failure)")
            }
        }
    }

    @Test(
        "A call that was refused says what it was and what to do, not only what the server calls it",
        arguments: [
            (401, "Access Denied", Outcome.Status.refused, "The session has ended. Access Denied. Sign in again"),
            (403, nil, .refused, "This user may not do that."),
            (429, "Too many", .refused, "Wait a moment and try again."),
            (500, nil, .failed, "The server could not answer. Try again, and look at its log. (status 500)"),
            (409, "Somebody has that name.", .refused, "The server refused: Somebody has that name. (status 409)"),
            (404, nil, .refused, "It gave no reason."),
        ] as [(Int, String?, Outcome.Status, String)])
    func refusal(status: Int, reason: String?, outcome: Outcome.Status, words: String) {
        let failure = SessionCalls.refusal(status, reason)
        #expect(failure.status == outcome)
        #expect(failure.description.lowercased().contains(words.lowercased()), "\(failure)")
    }

    @Test("A sign-in that is too long ago is not said to be something that the user may not do")
    func staleSignIn() {
        let failure = SessionCalls.refusal(
            403, of: ["detail": "Authenticate again first.", "code": "fresh_authentication_required"])
        #expect(failure.status == .refused && failure.description.contains("assent login"), "\(failure)")
        #expect(!failure.description.contains("may not"), "\(failure)")
        let denied = SessionCalls.refusal(403, of: ["detail": "No.", "code": "forbidden"])
        #expect(denied.description.contains("may not do that"), "\(denied)")
    }

    @Test("The longest bundle of evidence that can be judged can be fetched")
    func longestAnswer() async throws {
        let text = JSONValue.string(String(repeating: "a", count: SessionCalls.limit - 2))
        let bytes = text.serializedBytes()
        #expect(bytes.count == 16 << 20)
        let answer = try await SessionCalls.answer(
            HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(bytes)), expecting: 200)
        #expect(answer == text)
    }

    @Test("A proxy's page in the place of an answer is told by its status, and not as JSON that cannot be read")
    func proxyPage() async throws {
        for page in ["<html>Bad Gateway</html>", ""] {
            let reply = HTTPReply(HTTPResponse(status: .badGateway), body: HTTPBody(Array(page.utf8)))
            let failure = await #expect(throws: CommandFailure.self) {
                try await SessionCalls.answer(reply, expecting: 200)
            }
            #expect(failure?.status == .failed)
            #expect(failure?.description.contains("could not answer") == true)
            #expect(failure?.description.contains("(status 502)") == true)
        }
        let page = HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(Array("<html>Sign in</html>".utf8)))
        await #expect(throws: JSONError.self) { try await SessionCalls.answer(page, expecting: 200) }
    }

    @Test("A change of which nobody knows whether it was made ends with the status for that")
    func unknownChange() {
        let failure = SessionCalls.refusal(503, of: ["message": "Look.", "detail": ["reason": "outcomeUnknown"]])
        #expect(failure.status == .unknown && failure.description == "The outcome is unknown: Look.")
        #expect(SessionCalls.refusal(503, of: ["message": "Later."]).status == .failed)
    }

    @Test("What a server wrote cannot change the terminal")
    func escaped() {
        let outcome = Outcome(JourneyError(status: 401, body: ["message": "no\u{1B}[2J"]))
        #expect(outcome.lines.allSatisfy { !$0.contains("\u{1B}") })
    }

    @Test(
        "A transaction's id is one word of the command that somebody is told to type, whatever a server wrote there",
        arguments: [
            ("t-1_2.3", "t-1_2.3"), ("$(reboot)", "'$(reboot)'"), ("a;b`c`|d", "'a;b`c`|d'"),
            ("a'$(b)'", #"'a'"'"'$(b)'"'"''"#), ("a\\'b", #"'a\\'"'"'b'"#),
        ])
    func quotedID(id: String, word: String) {
        let pending = PendingRequest(transactionID: id, idempotencyKey: nil)
        let outcome = Outcome(AuthorizationError(.outcomeUnknown, "the connection ended", pending: pending))
        #expect(outcome.lines.last == "Do not repeat it. Run the same command again with --ask \(word)")
    }

    @Test("What a shell makes of such a word is the text itself")
    func shell() throws {
        let home = try VaultCommandTests.Home()
        for text in ["", "plain", "$(echo x)`echo y`", "a'b\"c\\d; e | f & g > h * ~ # !", "'", "''", "é\n-"] {
            let ended = try home.run(
                URL(fileURLWithPath: "/bin/sh"), ["-c", "printf '<%s>' \(ShellWord.quoted(text))"])
            #expect(ended.out == "<\(text)>", "\(ended.err)")
        }
    }

    @Test("A reader that has enough, as head does, is no failure worth a word, and the status is that of SIGPIPE")
    func closedPipe() async throws {
        let home = try VaultCommandTests.Home()
        try await home.fill()
        // The shell's own status is that of the last command; the first one's goes to standard error.
        let script =
            "{ trap '' PIPE; until ! printf x 2>/dev/null; do :; done; '\(home.program.path)' vault list; echo \"status $?\" >&2; } | true"
        let ended = try home.run(URL(fileURLWithPath: "/bin/sh"), ["-c", script])
        #expect(ended.err.contains("status 141") && !ended.err.contains("not complete"), "\(ended.err)")
    }

    #if os(Linux)
    @Test(
        "Output that does not fit on the disk is a failure, and says so",
        arguments: [["vault", "list"], ["vault", "list", "--json"]])
    func fullDisk(arguments: [String]) async throws {
        let home = try VaultCommandTests.Home()
        try await home.fill()
        let command = ([home.program.path] + arguments).map { "'\($0)'" }.joined(separator: " ")
        let ended = try home.run(URL(fileURLWithPath: "/bin/sh"), ["-c", command + " > /dev/full"])
        #expect(ended.status == 1 && ended.err.contains("The output is not complete"), "\(ended.err)")
    }
    #endif
}
