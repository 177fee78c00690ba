import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import AssentVault
import Testing

@Suite("Signing device: new keys behind passwords, from a server that lies")
struct RenewalPasswordTests {
    private typealias Offer = ScriptedServer.PasswordOffer

    private let scene: Scene
    private let pin = Secret("271828")
    private let new = Secret("839201")

    init() throws { scene = try Scene() }

    private func enrolled(
        _ mode: PasswordMode, _ change: (inout ScriptedServer.PasswordOffer) -> Void = { _ in }
    ) async throws -> SigningContainer {
        try await scene.enrolled(scene.device(), [.signing: "271828"], by: Offer(mode, change))
    }

    /// Changes the elements of a list of an offer.
    private static func edit(
        _ list: String, of offer: inout JSONObject, _ change: (inout JSONObject) -> Void
    ) {
        offer[list] = .array(
            (offer[list]?.array ?? []).map { element in
                guard var object = element.object else { return element }
                change(&object)
                return .object(object)
            })
    }

    private func hasCommitted() async -> Bool {
        await scene.server.asked.contains { $0.hasSuffix("/commit") && $0.contains("renew") }
    }

    @Test("A PIN whose guesses the server counts is not handed to the device alone")
    func downgrade() async throws {
        let container = try await enrolled(.assisted)
        await scene.server.edit("renewal.offer") { offer in
            offer["slots"] = [["slot": "signing", "mode": "local", "gen": 1]]
            Self.edit("policies", of: &offer) { policy in
                guard policy["id"] == "signing" else { return }
                (policy["mode"], policy["lock"]) = ("local", ["type": "none"])
            }
        }
        let asked = Asked(pin)
        await #expect(throws: SigningError(.protectionPolicy)) { try await container.renew(password: asked.prompt) }
        #expect(asked.log.isEmpty)
        #expect(await !hasCommitted())
    }

    @Test("The generation of a PIN only goes up, so that no evaluation serves two keys")
    func generation() async throws {
        let container = try await enrolled(.assisted)
        await scene.server.edit("renewal.offer") { Self.edit("slots", of: &$0) { $0["gen"] = 0 } }
        await #expect(throws: SigningError(.offerRefused)) { try await container.renew(password: Asked(pin).prompt) }
        #expect(await !hasCommitted())
        await scene.server.edit("renewal.offer", nil)
        #expect(try await container.renew(password: Asked(pin).prompt).isDone)
    }

    @Test("A password whose file is enough to guess it does not become a PIN that the server counts guesses of")
    func upgrade() async throws {
        let container = try await enrolled(.local)
        try await scene.server.offer(Offer(.assisted))
        let same = Asked(pin)
        let error = await #expect(throws: SigningError(.invalidPassword)) {
            try await container.renew(password: same.prompt)
        }
        #expect(error?.rule == .history && same.log == [false, true])
        #expect(await !hasCommitted())
        let other = Asked(pin, new: new)
        #expect(try await container.renew(password: other.prompt).isDone)
        #expect(other.log == [false, true])
        #expect(try await scene.device().container(container.id).password(.signing)?.mode == .assisted)
    }

    @Test("A password that breaks the server's new rules is replaced at a renewal, by one that keeps them")
    func stricter() async throws {
        let container = try await enrolled(.local)
        await scene.server.edit("renewal.offer") { offer in
            Self.edit("policies", of: &offer) { policy in
                guard var rules = policy["password"]?.object else { return }
                rules["minLength"] = 8
                policy["password"] = .object(rules)
            }
        }
        let short = Asked(pin, new: new)
        let error = await #expect(throws: SigningError(.invalidPassword)) {
            try await container.renew(password: short.prompt)
        }
        #expect(error?.rule == .minimumLength(8) && short.log == [false, true])
        #expect(await !hasCommitted())
        let long = Secret("83920174")
        #expect(try await container.renew(password: Asked(pin, new: long).prompt).isDone)
        let password = try #require(await scene.device().container(container.id).password(.signing))
        try await password.verify(long)
        await #expect(throws: SigningError(.wrongPassword)) { try await password.verify(pin) }
    }

    @Test("A renewal takes no earlier password back, and makes none younger")
    func historyAndAge() async throws {
        await scene.server.certify(900...900_000)
        let container = try await enrolled(.local) {
            $0.rules["history"] = 2
            $0.rules["maxAge"] = 2
        }
        let password = try #require(container.password(.signing))
        try await password.change(from: pin, to: new)
        await scene.server.set(time: 1000 + 86400)
        #expect(try await container.renew(password: Asked(new).prompt).isDone)
        try await password.verify(new)
        let error = await #expect(throws: SigningError.self) { try await password.change(from: new, to: pin) }
        #expect(error?.rule == .history)
        await scene.server.set(time: 1000 + 2 * 86400 + 61)
        try await container.status()
        await #expect(throws: SigningError(.passwordExpired)) { try await password.verify(new) }
    }

    @Test("Where the server wants a newer word of the old key, the password is asked for once more, and only once")
    func endorseAgain() async throws {
        let container = try await enrolled(.assisted)
        let refusal = ScriptedServer.Refusal(status: 403, code: "unlock_required")
        await scene.server.refuse("/device/renew/complete", refusal, times: 2)
        let asked = Asked(pin)
        await #expect(throws: SigningError(.unlockRequired)) { try await container.renew(password: asked.prompt) }
        #expect(asked.log == [false, false])
        #expect(await scene.server.asked.count { $0 == "/device/renew/complete" } == 2)
        await scene.server.refuse("/device/renew/complete", refusal, times: 1)
        let again = Asked(pin)
        #expect(try await container.renew(password: again.prompt).isDone)
        #expect(again.log == [false])
        // It was the same renewal, with the same key list.
        #expect(await scene.server.asked.count { $0 == "/device/renew/start" } == 1)
        #expect(await scene.server.signingSlot?.n == 3)
    }

    @Test("Keys that were destroyed are not renewed, and nobody is asked for their password")
    func destroyed() async throws {
        let container = try await enrolled(.assisted)
        await scene.server.edit(.signing) { $0.key = nil }
        try await container.status()
        let asked = Asked(pin)
        let error = await #expect(throws: SigningError(.credentialsLost)) {
            try await container.renew(password: asked.prompt)
        }
        #expect(error?.passwordState == .shredded && asked.log.isEmpty)
        #expect(await !hasCommitted())
    }

    @Test("A password is not changed while the server has new keys that may count: they would bring the old one back")
    func changeMeanwhile() async throws {
        let container = try await enrolled(.local)
        let password = try #require(container.password(.signing))
        // The server has the new keys, and has not signed yet that they count.
        await scene.server.edit("renewal.status") { $0["keys"] = [] }
        #expect(try await !container.renew(password: Asked(pin).prompt).isDone)
        let names = await scene.keys.keyNames()
        await #expect(throws: SigningError(.busy)) { try await password.change(from: pin, to: new) }
        #expect(await scene.keys.keyNames() == names)
        try await password.verify(pin)
        await scene.server.edit("renewal.status", nil)
        try await password.change(from: pin, to: new)
        let renewed = try await container.renewed()
        #expect(Set(renewed.keys.map(\.id)).isDisjoint(with: container.keys.map(\.id)))
        try await #require(renewed.password(.signing)).verify(new)
        #expect(await scene.server.asked.count { $0 == "/device/renew/start" } == 1)
    }

    @Test("A renewal that is given up leaves all that the old password needs", arguments: PasswordMode.allCases)
    func givenUp(mode: PasswordMode) async throws {
        let container = try await enrolled(mode)
        let names = await Set(scene.keys.keyNames())
        // It begins again by itself, once.
        let void = ScriptedServer.Refusal(status: 410, code: "enrolment_void")
        await scene.server.refuse("/device/renew/commit", void, times: 2)
        let asked = Asked(pin)
        await #expect(throws: SigningError(.enrolmentVoid)) { try await container.renew(password: asked.prompt) }
        #expect(asked.log == [false, false])
        #expect(await scene.server.asked.count { $0 == "/device/renew/start" } == 2)
        #expect(await Set(scene.keys.keyNames()) == names)
        let password = try #require(await scene.device().container(container.id).password(.signing))
        try await password.verify(pin)
        await #expect(throws: SigningError(.wrongPassword)) { try await password.verify(new) }
        #expect(try await container.renew(password: Asked(pin).prompt).isDone)
    }

    @Test("A change of the password gives a renewal up of which the server has no keys, and the old keys stay")
    func changeAtBeginning() async throws {
        let container = try await enrolled(.local)
        let names = await Set(scene.keys.keyNames())
        await scene.server.refuse("/device/renew/commit", .init(status: 503, code: "unavailable"))
        await #expect(throws: SigningError(.unavailable)) { try await container.renew(password: Asked(pin).prompt) }
        #expect(await Set(scene.keys.keyNames()).isStrictSuperset(of: names))
        let password = try #require(container.password(.signing))
        try await password.change(from: pin, to: new)
        #expect(await Set(scene.keys.keyNames()) == names)
        try await password.verify(new)
        // The next one begins anew, with the password that counts.
        #expect(try await container.renew(password: Asked(new).prompt).isDone)
        #expect(await scene.server.asked.count { $0 == "/device/renew/start" } == 2)
        let renewed = try #require(await scene.device().container(container.id).password(.signing))
        try await renewed.verify(new)
    }

    @Test("Deleted while new keys are on their way, and offline: nothing is left to guess the password at")
    func deletedMeanwhile() async throws {
        let container = try await enrolled(.local)
        let before = try await scene.sealedBlobs(.signing).count
        await scene.server.edit("renewal.status") { $0["keys"] = [] }
        #expect(try await !container.renew(password: Asked(pin).prompt).isDone)
        let blobs = try await scene.sealedBlobs(.signing)
        #expect(blobs.count == 2 * before && !blobs.contains(""))
        await scene.server.refuse("/device/delete", ScriptedServer.Refusal(status: 404, code: "unknown_container"))
        #expect(try await !container.delete(reason: "sold"))
        #expect(try await scene.sealedBlobs(.signing).allSatisfy(\.isEmpty))
    }

    // MARK: Enrolment

    @Test("A new container's password begins with generation 0, in a mode that the app allows, with a key on the curve")
    func enrolments() async throws {
        let junk = JSONValue.string(Base64URL.encode([2] + [UInt8](repeating: 255, count: 48)))
        let lies: [(PasswordMode, SigningError.Code, ScriptedServer.Edit)] = [
            (.assisted, .offerRefused, { Self.edit("slots", of: &$0) { $0["gen"] = 1 } }),
            (.local, .offerRefused, { Self.edit("slots", of: &$0) { $0["gen"] = 1 } }),
            (.assisted, .serverAuthentication, { Self.edit("slots", of: &$0) { $0["pk"] = junk } }),
        ]
        for (mode, code, lie) in lies {
            let scene = try Scene()
            try await scene.server.offer(Offer(mode))
            await scene.server.edit("offer", lie)
            let asked = Asked(pin)
            await #expect(throws: SigningError(code)) {
                try await scene.device().enrol(scene.invite(), password: asked.prompt)
            }
            #expect(asked.log.isEmpty)
            #expect(await !scene.server.asked.contains("/device/provision/commit"))
        }
        try await scene.server.offer(Offer(.local))
        await scene.server.expect(modes: [.device, .assisted])
        var configuration = SigningDeviceConfiguration()
        configuration.modes = [.device, .assisted]
        await #expect(throws: SigningError(.protectionPolicy)) {
            try await scene.device(configuration: configuration).enrol(scene.invite(), password: Asked(pin).prompt)
        }
    }

    @Test(
        "A new PIN is evaluated by the offered key, for an enrolment, its slot and its generation: else no key is made")
    func evaluations() async throws {
        struct Stopped: Error {}
        try await scene.server.offer(Offer(.assisted))
        let invite = try await scene.invite()
        let device = scene.device()
        // The offer is stored.
        await #expect(throws: Stopped.self) { try await device.enrol(invite) { _ in throw Stopped() } }
        let key = try #require(await scene.server.signingSlot?.key)
        let other = try ObliviousKey()
        await scene.server.edit(.signing) { $0.key = other }
        await #expect(throws: SigningError(.serverAuthentication)) {
            try await device.enrol(invite, password: Asked(pin).prompt)
        }
        await scene.server.edit(.signing) { $0.key = key }
        let lies: [ScriptedServer.Edit] = [
            { $0["gen"] = 1 }, { $0["slot"] = "session" }, { ($0["purpose"], $0["left"]) = ("change", nil) },
        ]
        for lie in lies {
            await scene.server.edit("eval", lie)
            await #expect(throws: SigningError(.serverAuthentication)) {
                try await device.enrol(invite, password: Asked(pin).prompt)
            }
        }
        #expect(await scene.server.commitments.isEmpty)
        await scene.server.edit("eval", nil)
        let enrolment = try await device.enrol(invite, password: Asked(pin).prompt)
        #expect(try await scene.server.type(enrolment.digits))
    }

    // MARK: Changes

    @Test("A changed PIN is evaluated for the change, its slot and its generation: else the old one stays")
    func changes() async throws {
        let container = try await enrolled(.assisted)
        let password = try #require(container.password(.signing))
        let lies: [ScriptedServer.Edit] = [
            { $0["gen"] = 2 }, { $0["gen"] = 0 }, { $0["slot"] = "session" },
            { ($0["purpose"], $0["left"]) = ("enrol", 1) },
        ]
        for lie in lies {
            await scene.server.edit("eval") { if $0["purpose"] == "change" { lie(&$0) } }
            await #expect(throws: SigningError(.serverAuthentication)) { try await password.change(from: pin, to: new) }
            try await password.verify(pin)
        }
        #expect(await !scene.server.asked.contains("/device/slots/change-commit"))
        await scene.server.edit("eval", nil)
        try await password.change(from: pin, to: new)
        try await password.verify(new)
    }

    @Test("A new PIN that breaks a rule costs no try of the old one")
    func brokenRule() async throws {
        let container = try await enrolled(.assisted)
        let password = try #require(container.password(.signing))
        for (text, rule) in [("12", PasswordRule.minimumLength(4)), ("1111", .sequence), ("", .unusable)] {
            let error = await #expect(throws: SigningError(.invalidPassword)) {
                try await password.change(from: pin, to: Secret(text))
            }
            #expect(error?.rule == rule)
        }
        #expect(await scene.server.signingSlot?.n == 0)
    }

    @Test("What is remembered of a PIN is not tried once it was changed elsewhere")
    func remembered() async throws {
        let device = scene.device()
        let container = try await scene.enrolled(
            device, [.signing: "271828"], by: Offer(.assisted) { $0.rules["cache"] = 60 })
        try await container.password(.signing)?.verify(pin)
        #expect(await container.password(.signing)?.isRemembered == true)
        try await scene.device().container(container.id).password(.signing)?.change(from: pin, to: new)
        let tries = await scene.server.signingSlot?.n
        let transaction = try await scene.fetched(container, on: device)
        await #expect(throws: SigningError(.passwordRequired)) {
            try await transaction.setStatus("accept", number: "42")
        }
        #expect(await scene.server.signingSlot?.n == tries)
        #expect(try await transaction.setStatus("accept", password: new, number: "42").effect == .approve)
    }

    @Test("The key of a session that is kept open is too old when its password is")
    func sessionAge() async throws {
        await scene.server.certify(900...900_000)
        let session = Secret("tr4in-spot")
        var configuration = SigningDeviceConfiguration()
        configuration.sessionPassword = { _ in session }
        let container = try await scene.enrolled(
            scene.device(configuration: configuration), [.signing: "271828", .session: "tr4in-spot"],
            by: Offer(.local), Offer(.local, slot: .session) { $0.rules["maxAge"] = 2 })
        #expect(try await container.transactionIDs().isEmpty)
        await scene.server.set(time: 1000 + 2 * 86400 + 61)
        try await container.status()
        for _ in 0..<2 {
            await #expect(throws: SigningError(.passwordExpired)) { try await container.transactionIDs() }
        }
    }

    @Test("A sealed key that was changed in the store is told as that, not as a wrong password")
    func changedBlob() async throws {
        let container = try await enrolled(.local)
        let name = try #require(await scene.store.names().first { $0.hasPrefix("signing.container.") })
        let stored = try #require(try await scene.store.value(name))
        let blob = try #require(await scene.sealedBlobs(.signing).first)
        var bytes = try #require(Base64URL.decode(blob))
        bytes[bytes.count - 1] ^= 1
        let text = stored.value.reveal().replacing(blob, with: Base64URL.encode(bytes))
        try await scene.store.update(name, to: Secret(text), expected: .any)
        let password = try #require(await scene.device().container(container.id).password(.signing))
        await #expect(throws: SigningError(.secureData)) { try await password.verify(pin) }
        #expect(try await scene.sealedBlobs(.signing).allSatisfy { !$0.isEmpty })
    }
}
