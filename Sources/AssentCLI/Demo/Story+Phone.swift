import Assent
import AssentServer
import AssentSigning
import Foundation

/// A payment that is signed on a device instead of being approved with a code.
extension Story {
    private static let payment: JSONValue = ["to": "Bob", "amount": "100.00", "currency": "EUR"]

    func signOnPhone(_ assent: Assent) async throws {
        narration.tell(
            .step(number: 9, title: "Her phone is enrolled: it shows a payment, and signs what it has shown"))
        let early = try await ask(assent, "invites", [:])
        check("her sign-in is too long ago to invite a device: 403", early.status == 403)
        try await signIn(assent, forcing: true)
        let phone = try await openPhone()
        try await enrol(phone, assent)
        let reply = try await pay(assent, with: phone)
        check("the phone's signature instead of a code: 201", reply.status == 201)
        check("the money moved", try await balance(assent) == "100.00")
    }

    private func openPhone() async throws -> SigningDevice {
        func file(_ name: String) -> URL { URL(fileURLWithPath: "\(world.directory)/phone\(name)") }
        let vault = try await FileVault.open(file(""), store: "phone", keys: .softwareFile(file(".key")))
        return SigningDevice(
            store: vault, keys: SoftwareKeyProvider(unprotectedFile: file("-device.key")),
            transport: NarratingTransport(
                transport: transport, narration: narration, parties: parties, sender: .phone),
            clock: clock, logger: logger)
    }

    private func enrol(_ phone: SigningDevice, _ assent: Assent) async throws {
        let invite = try await ask(assent, "invites", [:]).json
        let code = invite["code"]?.string ?? ""
        remember("invite's code", Secret(code))
        narration.tell(.note(.user, "types the code of the page into her phone"))
        let issuer = "\(world.endpoints.server)/signing/\(try JourneyRealm(assent.configuration.realm).path)"
        let enrolment = try await phone.enrol(SigningInvite(typed: code, issuer: issuer), name: "Ana's phone")
        narration.tell(.note(.user, "types the digits that the phone shows into the page"))
        let place = "invites/\(invite["pid"]?.string ?? "")/digits"
        let wrong = try await ask(assent, place, ["digits": "0000 0000"])
        check("other digits are refused: nobody is between phone and server unseen", wrong.status >= 400)
        let right = try await ask(assent, place, ["digits": .string(enrolment.digits ?? "")])
        check("the right ones make the phone hers", right.status == 200)
    }

    private func pay(_ assent: Assent, with phone: SigningDevice) async throws -> HTTPReply {
        let decided = Locked(false)
        return try await clock.running {
            try await assent.send(.post(transfers, json: Self.payment)) { approval in
                let text = approval.step.callbacks.compactMap { ($0 as? TextOutputCallback)?.message }.joined()
                if let number = text.firstMatch(of: /Number: ([0-9]{2})/)?.output.1, !decided.withLock({ $0 }) {
                    try await sign(on: phone, number: String(number))
                    decided.withLock { $0 = true }
                }
                return try answer(&approval)
            }
        }
    }

    private func sign(on phone: SigningDevice, number: String) async throws {
        guard let container = try await phone.containers().first,
            let id = try await container.transactionIDs().first
        else { return check("the phone has the payment to show", false) }
        let transaction = try await phone.retrieveTransactionInfo(id).transaction()
        let shown = transaction.displayed.fields.map { "\($0.label): \($0.value)" }.joined(separator: ", ")
        narration.tell(.note(.phone, "shows “\(DisplayText.escapedForTerminal(shown))” and asks for the app's number"))
        check("the phone shows what was made from the request's own body", shown == "Amount: 100.00 EUR, To: Bob")
        guard let approve = transaction.allowedStatuses.first(where: { $0.effect == .approve }) else {
            return check("the payment can be approved", false)
        }
        narration.tell(.note(.user, "types the number, and approves"))
        let receipt = try await transaction.setStatus(approve.name, number: number)
        check("the server's receipt is signed, too", receipt.effect == .approve)
    }

    /// A call of the signing interface for users.
    private func ask(
        _ assent: Assent, _ place: String, _ json: JSONValue
    ) async throws -> (status: Int, json: JSONValue) {
        let realm = try JourneyRealm(assent.configuration.realm).path
        let url = "\(world.endpoints.server)/signing/\(realm)/\(place)"
        let session = try await assent.tokens.session()
        let reply = try await post(
            url, json, [(world.endpoints.cookieName, session?.token.reveal() ?? ""), ("X-Requested-With", "assent")])
        return (reply.status, try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16)))
    }
}
