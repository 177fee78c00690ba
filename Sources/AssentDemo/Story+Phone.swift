import Assent
import AssentServer
import AssentSigningProtocol
import Foundation

/// A payment that is signed on a device instead of being approved with a code.
extension Story {
    private static let payment: JSONValue = ["to": "Bob", "amount": "100.00", "currency": "EUR"]

    func signOnPhone(_ assent: Assent) async throws {
        narration.tell(
            .step(
                number: 13,
                title: "Her phone, another process, is enrolled: it shows a payment, and signs what it shows"))
        let early = try await ask(assent, IssuerPath.invites.path(), [:])
        check("her sign-in is too long ago to invite a device: 403", early.status == 403)
        try await signIn(assent, forcing: true)
        let phone = try Phone(of: world)
        try await enrol(phone, assent)
        let (reply, transaction) = try await pay(assent, with: phone)
        check("the phone's signature instead of a code: 201", reply.status == 201)
        check("the money moved", try await balance(assent) == "25.00")
        try await keepEvidence(of: transaction, assent)
    }

    private func enrol(_ phone: Phone, _ assent: Assent) async throws {
        let invite = try await ask(assent, IssuerPath.invites.path(), [:]).json
        let code = invite["code"]?.string ?? ""
        remember("invite's code", Secret(code))
        narration.tell(
            .note(.user, "types the code of the page into her phone (assent device enroll), and chooses a PIN"))
        let enrolling = try phone.start("enroll", code, "--name", "Ana's phone")
        // The server wants a PIN of each device, for logins; a payment needs none.
        enrolling.type(RememberedScene.pin.reveal(), RememberedScene.pin.reveal())
        let shown = await enrolling.lines(to: "    ").last?.trimmingCharacters(in: .whitespaces) ?? ""
        narration.tell(.note(.phone, "shows eight digits"))
        narration.tell(.note(.user, "types them into the page"))
        let place = IssuerPath.digits.path(invite["pid"]?.string ?? "")
        let wrong = try await ask(assent, place, ["digits": "0000 0000"])
        check("other digits are refused: nobody is between phone and server unseen", wrong.status >= 400)
        let right = try await ask(assent, place, ["digits": .string(shown)])
        check("the right ones make the phone hers", right.status == 200)
        await enrolling.ended()
    }

    private func pay(_ assent: Assent, with phone: Phone) async throws -> (reply: HTTPReply, transaction: String) {
        let listening = try phone.start("listen", "--once")
        guard await listening.lines(to: "Waiting").last?.hasPrefix("Waiting") == true else {
            throw Phone.Failure(description: "the phone does not listen; what it says itself is above")
        }
        narration.tell(.note(.phone, "waits for transactions (assent device listen)"))
        let signed = Locked<String?>(nil)
        let reply = try await clock.running {
            try await assent.send(.post(transfers, json: Self.payment)) { approval in
                let text = approval.step.callbacks.compactMap { ($0 as? TextOutputCallback)?.message }.joined()
                if let number = text.firstMatch(of: /Number: ([0-9]{2})/)?.output.1, signed.withLock({ $0 }) == nil {
                    let transaction = await sign(on: listening, number: String(number))
                    signed.withLock { $0 = transaction }
                }
                return try answer(&approval)
            }
        }
        guard let transaction = signed.withLock({ $0 }) else {
            await listening.stop()
            throw Phone.Failure(description: "the payment did not ask for the phone's signature")
        }
        await listening.ended()
        return (reply, transaction)
    }

    /// Approves what the phone shows. Returns the transaction's id, which the phone says when all is done.
    private func sign(on phone: ChildProcess, number: String) async -> String {
        phone.type("Approve", number)
        let lines = await phone.lines(to: "Signed and sent").map { DisplayText.escapedForTerminal($0) }
        let shown = lines.filter { $0.hasPrefix("  ") }.map { $0.split(separator: " ").joined(separator: " ") }
        narration.tell(.note(.phone, "shows “\(shown.joined(separator: ", "))”"))
        narration.tell(.note(.user, "types the number that the app shows into her phone, and approves"))
        check("the phone shows what was made from the request's own body", shown == ["Amount 100.00 EUR", "To Bob"])
        let receipt = lines.last?.firstMatch(of: /Signed and sent: [a-z]+, transaction (\S+)\./)
        narration.tell(.message(from: .phone, to: .server, text: "signed decision", refused: false))
        narration.tell(.message(from: .server, to: .phone, text: "signed receipt", refused: receipt == nil))
        check("the phone has verified the server's signed receipt", receipt != nil)
        return receipt.map { String($0.output.1) } ?? ""
    }

    /// A call of the signing interface for users.
    private func ask(
        _ assent: Assent, _ place: String, _ json: JSONValue
    ) async throws -> (status: Int, json: JSONValue) {
        let session = try await assent.tokens.session()
        let reply = try await post(
            "\(signing(assent))\(place)", json,
            [(world.endpoints.cookieName, session?.token.reveal() ?? ""), ("X-Requested-With", "assent")])
        return (reply.status, try JSONValue.parse(try await reply.body.collect(upTo: 1 << 16)))
    }
}
