import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

/// Journeys on one database with an issuer, and Ana's device.
final class SigningJourneyWorld: TestIssuer {
    let journeys: JourneyFixture
    let provider: SigningProvider
    let authentication: Authentication
    let session: Secret
    let heard = NewsRecorder()

    init(
        failedTransaction: FailedTransaction = .failure, authLevel: Int = 0,
        _ change: (inout SigningSettings) -> Void = { _ in }
    ) async throws {
        var settings = SigningSettings(issuer: SigningStoreFixture.issuer, name: "Bank of Example")
        settings.templates["confirm"] = SigningTemplate(
            title: LocalizedText("Confirm"), lifetime: 60, matchesNumber: true)
        change(&settings)
        journeys = try await JourneyFixture()
        provider = SigningProvider(journeys.context, settings: settings, notifier: heard)
        let sign = JourneyDefinition(
            name: "Sign", entry: "sign",
            nodes: [
                "sign": NodeDefinition(
                    "SignTransactionNode", config: ["template": "confirm"],
                    outcomes: [
                        "approve": .success, "decline": .failure, "expired": .node("late"), "noDevice": .failure,
                    ]),
                "late": NodeDefinition(
                    "MessageNode", config: ["message": "Too late"],
                    outcomes: ["true": .failure, "false": .failure]),
            ], transactionalOnly: true, authLevel: authLevel)
        authentication = Authentication(
            journeys.context,
            realms: [
                "/alpha": try RealmSignIn(
                    journeys: [sign], defaultJourney: nil, failedTransaction: failedTransaction,
                    remembersNetworks: true)
            ],
            transactions: journeys.transactions, passwords: journeys.passwords,
            oneTimePasswords: journeys.oneTimePasswords, signing: ["/alpha": provider],
            proofs: SenderProofs(journeys.context))
        session = try await journeys.signIn()
    }

    var name: String { provider.settings.issuer.name }

    func configuration() async throws -> (bytes: [UInt8], nonce: String) {
        (try await provider.door.configuration(), provider.door.nonce())
    }

    func send(_ path: String, proof: String?, body: String) async throws -> String {
        guard let call = DeviceCall(rawValue: path) else { throw TestRefusal("no such call") }
        do {
            return try await provider.door.answer(call, proof: proof, body: Array(body.utf8), address: "192.0.2.1")
        } catch {
            throw TestRefusal(error.code.rawValue)
        }
    }

    func enrolled(pushID: String? = nil) async throws -> (device: TestDevice, container: TestDevice.Enrolled) {
        let caller = SigningCaller(try #require(try await journeys.sessions.live(token: session)))
        let invite = try await provider.invites.make(caller, user: nil)
        let device = try TestDevice(self)
        let container = try await device.enrol(try #require(InviteCode(typed: invite.code.reveal())), pushID: pushID)
        _ = try await provider.invites.enter(digits: container.digits, caller, pid: invite.pid)
        return (device, container)
    }

    func begin(_ id: String, languages: [String] = [], from address: String? = nil) async throws -> Page {
        try Page(await answer(id, languages: languages, from: address))
    }

    func answer(
        _ id: String, languages: [String] = [], from address: String? = nil
    ) async throws -> AuthenticateReply {
        var request = AuthenticateRequest(
            realm: "/alpha", authIndexType: "transaction", authIndexValue: id, forceAuth: false,
            noSession: false, sessionToken: session, answer: nil, clientAddress: "192.0.2.7",
            header: { _ in nil })
        request.languages = languages
        request.clientIP = address.flatMap(IPAddress.init)
        return try await authentication.authenticate(request)
    }

    func poll(_ page: Page, from address: String? = nil) async throws -> AuthenticateReply {
        var request = AuthenticateRequest(
            realm: "/alpha", authIndexType: nil, authIndexValue: nil, forceAuth: false, noSession: false,
            sessionToken: session, answer: page.answered([]), header: { _ in nil })
        request.clientIP = address.flatMap(IPAddress.init)
        return try await authentication.authenticate(request)
    }

    /// What a policy says that lets users in from usual networks, and asks them from others.
    func access(from address: String, level: Int = 0) async throws -> AccessDecision {
        let policy = try TransactionFixture.policy(
            condition: .or([
                .usualNetwork(days: 30, level: level), .transaction(TransactionCondition(specifier: "Sign")),
            ]))
        let settlement = AccessSettlement(
            journeys.context,
            decisions: PolicyDecisionPoint(policySets: [try TransactionFixture.policySet([policy])]),
            transactions: journeys.transactions)
        let live = try #require(try await journeys.sessions.live(token: session))
        var request = SentRequest(
            session: PresentedSession(live), method: "POST",
            resource: try CanonicalResource("https://api.bank.example/transfers"), mediaType: "application/json",
            body: TransactionFixture.body, transactionID: nil)
        request.clientAddress = IPAddress(address)
        return await settlement.settle(request)
    }

    /// What the hosted page shows of a transaction.
    func stage(_ id: String) async throws -> ApprovalStage {
        try await authentication.stage(
            transactionID: id, AuthenticateRequest(realm: "/alpha", sessionToken: session))
    }

    /// The transaction that waits for the device.
    func signing() async throws -> SigningTransactionRecord {
        let rows = try await journeys.database.run(
            .read("SELECT * FROM signing_transactions WHERE state = 'PENDING'"))
        try #require(rows.count == 1)
        return try SigningTransactionRecord(rows[0])
    }
}
