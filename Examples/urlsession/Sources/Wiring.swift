import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTokens
import AssentTransportNIO
import AssentVault
import Foundation

/// What the app has of this library: who signs the user in, and who sends.
struct Wiring: Sendable {
    let bank: String
    let transport: NIOTransport
    let client: AuthorizedClient
    private let journeys: JourneyClient
    private let tokens: TokenManager

    /// Reads the command line: server, bank, file of the authority, and two pins.
    ///
    /// - Throws: what is wrong with one of them.
    init(_ words: [String]) throws {
        guard words.count == 6 else {
            say("AssentExampleURLSession SERVER BANK CA-FILE PIN BACKUP-PIN: Examples/urlsession/run.sh knows them")
            exit(64)
        }
        let (server, realm) = (words[1], "alpha")
        bank = words[2]
        transport = try NIOTransport(
            configuration: .init(
                trustRoots: .pemFile(words[3]), pins: ["localhost": .pins([try Pin(words[4]), try Pin(words[5])])]))
        journeys = JourneyClient(
            configuration: try JourneyConfiguration(server: server, realm: realm), transport: transport)
        tokens = TokenManager(
            configuration: try TokenConfiguration(
                issuer: "\(server)/oauth2/realms/root/realms/\(realm)", clientID: "bank-app",
                redirectURI: "http://127.0.0.1/callback", scopes: ["openid", "accounts"]),
            transport: transport, store: MemorySecretStore())
        let told = Locked("")
        client = try AuthorizedClient(
            // No other origin ever gets a credential.
            configuration: AuthorizationConfiguration(resources: [bank: .accessToken]), journeys: journeys,
            source: tokens, transport: transport,
            policies: [try AuthorizationPolicy("\(bank)/transfers", approve: { try Self.answer(&$0, told) })])
    }

    /// Signs the user in by the server's journey.
    func signIn() async throws {
        let session = try await journeys.run("Login") { step in
            if step.refusal != nil { say("That was not accepted. Try again.") }
            step[NameCallback.self]?.name = ask("Name")
            step[PasswordCallback.self]?.password = ask("Password", hidden: true)
            if step[TextInputCallback.self] != nil { step[TextInputCallback.self]?.text = ask("Code") }
            return .next
        }
        try await tokens.install(session)
    }

    /// Shows what is to be approved, and asks. `told` is what the user was told last while a device is waited for: the
    /// step comes again until they have answered there.
    private static func answer(_ approval: inout Approval, _ told: Locked<String>) throws -> StepAction {
        if approval.isFirstStep {
            for field in approval.display { say("  \(field.label): \(field.value)") }
            guard ask("Pay this? (yes or no)") == "yes" else { return .decline }
        }
        // Which number to type on the device.
        if let text = approval.waiting?.text, told.withLock({ $0 != text }) {
            say(text)
            told.withLock { $0 = text }
        }
        approval.agree()
        if approval.step.refusal != nil { say("That was not accepted. A code can be used once: wait for the next.") }
        if approval.step[TextInputCallback.self] != nil {
            approval.step[TextInputCallback.self]?.text = ask("The next code")
        }
        return .next
    }
}
