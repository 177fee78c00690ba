import Assent
import AssentCore
import AssentServer
import AssentSigningProtocol
import Foundation
import Testing

@testable import AssentCLI
@testable import AssentDemo

/// An app of its own that is a device, by the façade alone: what `docs/transaction-signing.md` shows to developers.
@Suite("The façade's device, from the invite to the evidence")
struct FacadeDeviceTests {
    private static let pin = Secret("0042")

    /// Payments are signed by a key behind a PIN, which the server helps to check.
    private static func withPIN(_ file: String) -> String {
        file.replacing(
            "      name: Bank of Example\n",
            with: """
                      name: Bank of Example
                      policies:
                        pin: {mode: assisted, kdf: "$scrypt$ln=14,r=8,p=1", password: {minLength: 4}}
                      keys:
                        - {usage: sign, label: payments, policy: pin}

                """)
    }

    /// An app on another machine: it has the issuer, keys of its own, and no session.
    private func phone(
        _ story: Story, issuers: Set<String>, over wire: SealedWire,
        sealedWith payloadKeys: [Assent.PayloadEncryption.Key] = []
    ) throws -> Assent {
        let file = try #require(ClientFile(endpoints: story.world.endpoints, configuration: story.world.configuration))
        var configuration = file.configuration(vault: .memory)
        configuration.transport = wire.watching(story.transport)
        configuration.clock = story.clock
        let keys = URL(fileURLWithPath: "\(story.world.directory)/\(SystemRandom().uuid()).keys")
        configuration.deviceKeys = SoftwareKeyProvider(unprotectedFile: keys)
        configuration.device = SigningDeviceConfiguration(issuers: issuers)
        if !payloadKeys.isEmpty { try configuration.seal(story, with: payloadKeys) }
        return try Assent(configuration)
    }

    private func ask(_ story: Story, _ app: Assent, _ place: String, _ json: JSONValue) async throws -> JSONValue {
        let session = try #require(try await app.tokens.session())
        let reply = try await story.post(
            "\(try story.signing(app))/\(place)", json,
            [(story.world.endpoints.cookieName, session.token.reveal()), ("X-Requested-With", "assent")])
        return try JSONValue.parse(try await reply.body.collect(upTo: 1 << 18))
    }

    /// What the user does on the phone: looks, and types the number and the PIN.
    private func sign(
        _ transactions: SigningTransactions, _ numbers: AsyncStream<String>
    ) async throws -> (shown: [String], id: String) {
        var waiting = transactions.makeAsyncIterator()
        let transaction = try #require(try await waiting.next())
        let shown = transaction.displayed.fields.map { "\($0.label): \($0.value)" }
        var typed = numbers.makeAsyncIterator()
        let number = try #require(await typed.next())
        await #expect(throws: SigningError(.passwordRequired)) {
            try await transaction.setStatus("accept", number: number)
        }
        let receipt = try await transaction.setStatus("accept", password: Self.pin, number: number)
        return (shown, receipt.transactionID)
    }

    @Test(
        "3: A PIN is chosen, digits come late, a payment is shown and signed, and evidence established; sealed as well",
        arguments: [false, true])
    func story(isSealed: Bool) async throws {
        let wire = SealedWire()
        try await World.run(logger: CollectingLog().logger, editing: Self.withPIN) { story in
            let app = try story.makeAssent()
            try await story.signIn(app, forcing: false)
            let invite = try await ask(story, app, "invites", [:])
            let issuer = try story.signing(app)
            let code = try SigningInvite(typed: try #require(invite["code"]?.string), issuer: issuer)

            let stranger = try phone(story, issuers: ["https://am.other.example/signing/alpha"], over: wire)
            await #expect(throws: SigningError(.untrustedIssuer)) { try await stranger.device.enrol(code) }

            var keys: [Assent.PayloadEncryption.Key] = []
            if isSealed {
                let keyring = try await PayloadKeyring(story)
                keys = [try await keyring.add()]
                await keyring.shutdown()
            }
            let phone = try phone(story, issuers: [issuer], over: wire, sealedWith: keys)
            // A policy wants a PIN, and the first one breaks its rule.
            await #expect(throws: SigningError(.passwordRequired)) { try await phone.device.enrol(code) }
            await #expect(throws: SigningError(.invalidPassword)) {
                try await phone.device.enrol(code, name: "Ana's phone", password: { _ in Secret("12") })
            }
            let enrolment = try await phone.device.enrol(
                code, name: "Ana's phone", pushID: "a-push-id", password: { _ in Self.pin })

            // As in the example: nothing says that the digits are not typed yet, the sequence waits for them.
            let transactions = try await phone.device.transactions()
            let numbers = AsyncStream.makeStream(of: String.self)
            let signing = Task { try await sign(transactions, numbers.stream) }
            let digits = try #require(enrolment.digits)
            let (reply, signed) = try await story.clock.running {
                let typed = try await ask(
                    story, app, "invites/\(invite["pid"]?.string ?? "")/digits", ["digits": .string(digits)])
                #expect(typed["state"]?.string == "ACTIVE", "\(typed)")
                let payment: JSONValue = ["to": "Bob", "amount": "100.00", "currency": "EUR"]
                let reply = try await app.send(.post(story.transfers, json: payment)) { approval in
                    if let shown = approval.waiting?.number { numbers.continuation.yield(shown) }
                    return try story.answer(&approval)
                }
                return (reply, try await signing.value)
            }
            #expect(reply.status == 201)
            #expect(signed.shown == ["Amount: 100.00 EUR", "To: Bob"])

            let session = try #require(try await app.tokens.session())
            let bundle = try await story.get(
                "\(issuer)/transactions/\(signed.id)/evidence",
                [(story.world.endpoints.cookieName, session.token.reveal())])
            let identity = try #require(try await story.get("\(issuer)/configuration", [])["identity"])
            let report = EvidenceVerification.report(
                on: try EvidenceBundle(reading: bundle.serializedBytes()),
                trust: try ProtocolKey(identity).thumbprint)
            #expect(report.exitStatus == 0 && report.contradicted.isEmpty, "\(report)")

            // Nothing that the phone has sent went otherwise than it should.
            #expect(wire.isSealed == isSealed && wire.sent.count >= 6, "\(wire)")
            #expect(wire.messages.isEmpty == !isSealed)
        }
    }
}
