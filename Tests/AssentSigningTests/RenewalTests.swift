import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import AssentTesting
import AssentVault
import Testing

@Suite("Signing device: new keys, from a server that lies")
struct RenewalTests {
    let scene: Scene

    init() throws { scene = try Scene() }

    private static func appending(_ key: JSONValue, to offer: inout JSONObject) {
        offer["keys"] = .array((offer["keys"]?.array ?? []) + [key])
    }

    /// Changes one key of an offer.
    private static func edit(_ label: String, of offer: inout JSONObject, _ change: (inout JSONObject) -> Void) {
        offer["keys"] = .array(
            (offer["keys"]?.array ?? []).map { key in
                guard key["label"]?.string == label, var object = key.object else { return key }
                change(&object)
                return .object(object)
            })
    }

    @Test("New keys take the place of the old ones, which vouch for them and are removed")
    func renewed() async throws {
        let container = try await scene.enrolled(scene.device())
        let old = await scene.keys.keyNames()
        #expect(try await container.renew().isDone)
        let renewed = try await container.renewed()
        #expect(renewed.id == container.id)
        #expect(Set(renewed.keys.map(\.id)).isDisjoint(with: container.keys.map(\.id)))
        #expect(await Set(scene.keys.keyNames()).isDisjoint(with: old))
        #expect(try await renewed.status().state == .active)
    }

    /// What is changed in a reply, or who signs it.
    enum Lie: String, CaseIterable, Sendable {
        case request, audience, issuer, early, late, member, signer, user

        var edit: ScriptedServer.Edit? {
            switch self {
            case .request: { $0["rqh"] = .string(SigningHash.request("other").text) }
            case .audience: { $0["aud"] = .string(SigningID(random: SystemRandom()).text) }
            case .issuer: { $0["iss"] = "https://other.example" }
            case .early: { $0["iat"] = 899 }
            case .late: { $0["iat"] = 90_001 }
            case .member: { $0["extra"] = 1 }
            case .user: { $0["sub"] = "mallory" }
            case .signer: nil
            }
        }
    }

    @Test(
        "A reply to another request, for another device or user, of another issuer or time, or by another key, is dropped",
        arguments: ["renewal.offer", "renewal.nonce", "renewal.enrolled", "renewal.status"], Lie.allCases)
    func replies(name: String, lie: Lie) async throws {
        let container = try await scene.enrolled(scene.device())
        let old = container.keys.map(\.id)
        await scene.server.edit(name, lie.edit)
        if lie == .signer { await scene.server.sign(name, with: try .generate(.es256)) }
        await #expect(throws: SigningError(.serverAuthentication)) { try await container.renew() }
        // The old keys are there as long as nobody has signed that the new ones count.
        let names = await scene.keys.keyNames()
        #expect(names.count >= old.count)
        await scene.server.edit(name, nil)
        await scene.server.sign(name, with: nil)
        #expect(try await container.renew().isDone)
        let renewed = try await container.renewed()
        #expect(Set(renewed.keys.map(\.id)).isDisjoint(with: old))
        #expect(await scene.keys.keyNames().count == renewed.keys.count)
        #expect(await scene.server.asked.count { $0 == "/device/renew/commit" } <= 2)
    }

    @Test("An offer that breaks a rule, or is for another container, identity key, invite or way, makes no key")
    func offers() async throws {
        let container = try await scene.enrolled(scene.device())
        let invite = try await scene.invite()
        let before = await scene.keys.keyNames()
        let lies: [(String, SigningInvite?, ScriptedServer.Edit)] = [
            (
                "two device keys", nil,
                { Self.appending(["usage": "device", "label": "second", "policy": "device"], to: &$0) }
            ),
            ("no policy", nil, { offer in Self.edit("payments", of: &offer) { $0["policy"] = "other" } }),
            ("container", nil, { $0["did"] = .string(SigningID(random: SystemRandom()).text) }),
            ("identity key", nil, { $0["identity"] = .string(SigningHash(sha256: []).text) }),
            ("digits without a code", nil, { $0["commit"] = "digits" }),
            ("no digits with a code", invite, { $0["commit"] = "exchange" }),
            ("invite", invite, { $0["pid"] = $0["did"] }),
        ]
        for (what, invite, lie) in lies {
            await scene.server.edit("renewal.offer", lie)
            await #expect(throws: SigningError(.offerRefused), "\(what)") {
                try await container.renew(invite: invite)
            }
        }
        #expect(await scene.keys.keyNames() == before)
        #expect(await !scene.server.asked.contains("/device/renew/commit"))
        await scene.server.edit("renewal.offer", nil)
        #expect(try await container.renew().isDone)
    }

    @Test("An unsigned refusal ends no renewal unless a signed status lists the old key")
    func unsignedEnd() async throws {
        let container = try await scene.enrolled(scene.device())
        let invite = try await scene.invite()
        let renewal = try await container.renew(invite: invite)
        let names = await scene.keys.keyNames()
        await scene.server.refuse("/device/status", ScriptedServer.Refusal(status: 401, code: "bad_proof"), times: 1)
        // The status that the old key gets does not list it.
        let error = await #expect(throws: SigningError.self) { try await container.renew(invite: invite) }
        #expect(error?.code.rawValue == "bad_proof")
        #expect(await scene.keys.keyNames() == names)
        #expect(try await container.renew(invite: invite).digits == renewal.digits)
        #expect(await scene.server.asked.count { $0 == "/device/renew/start" } == 1)
    }

    @Test("New keys that the server has are given up for another code only when the server has taken that")
    func otherCode() async throws {
        let container = try await scene.enrolled(scene.device())
        let first = try await container.renew(invite: scene.invite())
        let names = await scene.keys.keyNames()
        let other = try Scene()
        await other.server.share(keysOf: scene.server)
        // The server knows one code only, and so refuses what it must have been asked for: the other one.
        let error = await #expect(throws: SigningError.self) { try await container.renew(invite: other.invite()) }
        #expect(error?.code.rawValue == "invalid_code")
        #expect(await scene.server.asked.count { $0 == "/device/renew/start" } == 2)
        // The digits of the first one may still be typed.
        #expect(await scene.keys.keyNames() == names)
        #expect(try await container.renew(invite: scene.invite()).digits == first.digits)
        #expect(await scene.server.asked.count { $0 == "/device/renew/start" } == 2)
    }

    @Test("What was begun with a code is given up for another one only when the server has taken that")
    func begunWithOtherCode() async throws {
        let container = try await scene.enrolled(scene.device())
        await scene.server.refuse("/device/renew/commit", .init(status: 503, code: "unavailable"))
        await #expect(throws: SigningError(.unavailable)) { try await container.renew(invite: scene.invite()) }
        let names = await scene.keys.keyNames()
        let other = try Scene()
        await other.server.share(keysOf: scene.server)
        let error = await #expect(throws: SigningError.self) { try await container.renew(invite: other.invite()) }
        #expect(error?.code.rawValue == "invalid_code")
        #expect(await scene.keys.keyNames() == names)
        // A server takes one commitment with a code: it must be the one to these keys.
        #expect(try await container.renew(invite: scene.invite()).digits != nil)
        #expect(await scene.keys.keyNames() == names)
        #expect(await scene.server.asked.count { $0 == "/device/renew/start" } == 2)
    }

    @Test("A renewal without a code that the server refuses leaves a reset alone", arguments: ["commit", "complete"])
    func refusedWithoutCode(step: String) async throws {
        let container = try await scene.enrolled(scene.device())
        let invite = try await scene.invite()
        await scene.server.refuse("/device/renew/\(step)", .init(status: 503, code: "unavailable"))
        await #expect(throws: SigningError(.unavailable)) { try await container.renew(invite: invite) }
        let names = await scene.keys.keyNames()
        await scene.server.refuse("/device/renew/start", .init(status: 403, code: "fresh_authentication_required"))
        await #expect(throws: SigningError(.freshAuthenticationRequired)) { try await container.renew() }
        #expect(await scene.keys.keyNames() == names)
        #expect(try await container.renew(invite: invite).digits != nil)
        #expect(await scene.keys.keyNames() == names)
        #expect(await scene.server.asked.count { $0 == "/device/renew/start" } == 2)
    }

    @Test("An offer that takes the password from a key is refused, also when the key has another name")
    func takenPassword() async throws {
        let container = try await scene.enrolled(
            scene.device(), [.signing: "7391"], by: ScriptedServer.PasswordOffer(.local))
        func bare(_ label: String, _ name: String? = nil) -> ScriptedServer.Edit {
            { offer in
                Self.edit(label, of: &offer) { key in
                    key["slot"] = nil
                    key["policy"] = "device"
                    if let name { key["label"] = .string(name) }
                }
            }
        }
        for lie in [bare("payments"), bare("sign-in"), bare("payments", "other"), bare("sign-in", "other")] {
            await scene.server.edit("renewal.offer", lie)
            await #expect(throws: SigningError(.protectionPolicy)) {
                try await container.renew { _ in Secret("7391") }
            }
        }
        #expect(await !scene.server.asked.contains("/device/renew/commit"))
    }

    @Test("A key with a password gets no namesake without one, though another of its use had none before")
    func takenFromNamesake() async throws {
        // The edit is made in each offer, also in that of the renewal.
        await scene.server.edit("offer") {
            Self.appending(["usage": "sign", "label": "small", "policy": "device"], to: &$0)
        }
        let container = try await scene.enrolled(
            scene.device(), [.signing: "7391"], by: ScriptedServer.PasswordOffer(.local))
        await scene.server.edit("renewal.offer") { offer in
            Self.edit("payments", of: &offer) { ($0["slot"], $0["policy"]) = (nil, "device") }
        }
        await #expect(throws: SigningError(.protectionPolicy)) { try await container.renew { _ in Secret("7391") } }
        #expect(await !scene.server.asked.contains("/device/renew/commit"))
        await scene.server.edit("renewal.offer", nil)
        #expect(try await container.renew { _ in Secret("7391") }.isDone)
    }

    @Test("An enrolment whose offer has the id of a container that exists is refused")
    func existingContainer() async throws {
        let container = try await scene.enrolled(scene.device())
        var other = try Scene()
        (other.store, other.keys) = (scene.store, scene.keys)
        await other.server.share(keysOf: scene.server)
        let did = scene.server.did.text
        await other.server.edit("offer") { $0["did"] = .string(did) }
        await #expect(throws: SigningError(.offerRefused)) { try await other.device().enrol(other.invite()) }
        #expect(try await scene.device().containers().map(\.id) == [container.id])
    }
}
