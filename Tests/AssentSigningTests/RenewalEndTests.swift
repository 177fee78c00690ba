import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import Testing

@Suite("Signing device: which keys count when a renewal ends")
struct RenewalEndTests {
    let scene: Scene

    init() throws { scene = try Scene() }

    private static func key(_ kid: String, _ state: String) -> JSONValue {
        ["kid": .string(kid), "usage": "device", "label": "device", "state": .string(state)]
    }

    private func starts() async -> Int { await scene.server.asked.count { $0 == "/device/renew/start" } }

    @Test("New keys are taken only when the server has signed that the new device key is active")
    func notYet() async throws {
        let container = try await scene.enrolled(scene.device())
        let stranger = try ProtocolKey(SoftwareSigningKey.generate(.es256)).thumbprint.text
        let lies: [ScriptedServer.Edit] = [
            { $0["keys"] = [] }, { $0["keys"] = [Self.key(stranger, "ACTIVE")] },
            { status in
                status["keys"] = .array(
                    (status["keys"]?.array ?? []).map { key in
                        var key = key.object ?? JSONObject()
                        key["state"] = "RETIRED"
                        return .object(key)
                    })
            },
        ]
        for lie in lies {
            await scene.server.edit("renewal.status", lie)
            #expect(try await !container.renew().isDone)
            #expect(try await scene.device().container(container.id).keys == container.keys)
            // Old and new keys are both there.
            #expect(await scene.keys.keyNames().count == 2 * container.keys.count)
        }
        #expect(await starts() == 1)
        await scene.server.edit("renewal.status", nil)
        let renewed = try await container.renewed()
        #expect(Set(renewed.keys.map(\.id)).isDisjoint(with: container.keys.map(\.id)))
        #expect(await scene.keys.keyNames().count == renewed.keys.count)
    }

    @Test("After an unsigned refusal new keys are given up only if the signed status has the old device key as active")
    func oldKey() async throws {
        let container = try await scene.enrolled(scene.device())
        let invite = try await scene.invite()
        let digits = try await container.renew(invite: invite).digits
        let names = await scene.keys.keyNames()
        let old = try #require(container.keys.first { $0.usage == .device }).id
        let other = try #require(container.keys.first { $0.usage == .sign }).id
        let refusal = ScriptedServer.Refusal(status: 401, code: "bad_proof")
        for (kid, state) in [(old, "RETIRED"), (other, "ACTIVE")] {
            await scene.server.edit("renewal.status") { $0["keys"] = [Self.key(kid, state)] }
            await scene.server.refuse("/device/status", refusal, times: 1)
            await #expect(throws: SigningError(.init(rawValue: "bad_proof"))) {
                try await container.renew(invite: invite)
            }
            #expect(await scene.keys.keyNames() == names)
        }
        await scene.server.edit("renewal.status") { $0["keys"] = [Self.key(old, "ACTIVE")] }
        await scene.server.refuse("/device/status", refusal, times: 1)
        // The old key is active as long as the digits are missing: the new one is asked for again.
        #expect(try await container.renew(invite: invite).digits == digits)
        #expect(await scene.keys.keyNames() == names)
        #expect(await starts() == 1)
    }

    @Test("A reset that the server does not know is told as over, and its keys stay while its digits could be typed")
    func unknownReset() async throws {
        let container = try await scene.enrolled(scene.device())
        let invite = try await scene.invite()
        let digits = try await container.renew(invite: invite).digits
        let names = await scene.keys.keyNames()
        let old = try #require(container.keys.first { $0.usage == .device }).id
        await scene.server.edit("renewal.status") { $0["keys"] = [Self.key(old, "ACTIVE")] }
        for _ in 0..<2 {
            await scene.server.forgetRenewal()
            await #expect(throws: SigningError(.enrolmentVoid)) { try await container.renewed() }
            await #expect(throws: SigningError(.enrolmentVoid)) { try await container.renew(invite: invite) }
            #expect(await scene.keys.keyNames() == names)
            await scene.server.forgetRenewal(false)
            #expect(try await container.renew(invite: invite).digits == digits)
        }
        #expect(await starts() == 1)
        // Ten minutes after the end of the offer.
        await scene.server.forgetRenewal()
        await scene.server.set(time: 2501)
        await #expect(throws: SigningError(.enrolmentVoid)) { try await container.renewed() }
        #expect(await scene.keys.keyNames().count == container.keys.count)
        #expect(try await container.renew(invite: invite).digits != digits)
        #expect(await starts() == 2)
    }

    @Test(
        "An unsigned refusal before the server has the keys of a reset ends nothing: it goes on with the same code",
        arguments: ["start", "commit", "complete"], ["enrolment_void", "commitment_changed"])
    func unsignedRefusal(step: String, code: String) async throws {
        let container = try await scene.enrolled(scene.device())
        let invite = try await scene.invite()
        await scene.server.refuse("/device/renew/\(step)", .init(status: 410, code: code), times: 1)
        await #expect(throws: SigningError(.init(rawValue: code))) { try await container.renew(invite: invite) }
        let names = await scene.keys.keyNames()
        let renewal = try await container.renew(invite: invite)
        #expect(!renewal.isDone && renewal.digits != nil)
        if step != "start" {
            #expect(await scene.keys.keyNames() == names)
            #expect(await starts() == 1)
        }
    }

    @Test("A renewal without a code takes the place of a reset that the server has forgotten")
    func forgottenReset() async throws {
        let container = try await scene.enrolled(scene.device())
        let void = ScriptedServer.Refusal(status: 410, code: "enrolment_void")
        await scene.server.refuse("/device/renew/commit", void, times: 2)
        let invite = try await scene.invite()
        for _ in 0..<2 {
            await #expect(throws: SigningError(.enrolmentVoid)) { try await container.renew(invite: invite) }
        }
        #expect(await starts() == 1)
        #expect(try await container.renew().isDone)
        #expect(await starts() == 2)
        let renewed = try await container.renewed()
        #expect(await scene.keys.keyNames().count == renewed.keys.count)
    }

    @Test("A reset begins with an invite of the container's own issuer, which its pinned identity key vouches for")
    func invites() async throws {
        let container = try await scene.enrolled(scene.device())
        let foreign = try SigningInvite(
            typed: scene.server.code.shown.reveal(), issuer: "https://am.example/other")
        await #expect(throws: SigningError(.invalidArgument)) { try await container.renew(invite: foreign) }
        await scene.server.sign("invite", with: try .generate(.es256))
        let forged = try await scene.invite()
        await #expect(throws: SigningError(.serverAuthentication)) { try await container.renew(invite: forged) }
        await scene.server.sign("invite", with: nil)
        await scene.server.edit("invite") { $0["idk"] = .string(SigningHash(sha256: []).text) }
        let misled = try await scene.invite()
        await #expect(throws: SigningError(.untrustedIdentity)) { try await container.renew(invite: misled) }
        #expect(await starts() == 0)
        await scene.server.edit("invite", nil)
        #expect(try await container.renew(invite: scene.invite()).digits != nil)
    }

    @Test("A renewal without a code does not go on as a reset, and a reset not as one")
    func kinds() async throws {
        let container = try await scene.enrolled(scene.device())
        await scene.server.refuse("/device/renew/commit", .init(status: 503, code: "unavailable"))
        await #expect(throws: SigningError(.unavailable)) { try await container.renew() }
        let reset = try await container.renew(invite: scene.invite())
        #expect(!reset.isDone && reset.digits != nil)
        #expect(await starts() == 2)
        #expect(try await container.renew().isDone)
        #expect(await starts() == 3)
        let renewed = try await container.renewed()
        #expect(await scene.keys.keyNames().count == renewed.keys.count)
    }
}
