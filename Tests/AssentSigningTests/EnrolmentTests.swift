import AssentCore
import AssentJOSE
import AssentSigning
import AssentTesting
import AssentVault
import Testing

@Suite("Signing device: enrolment")
struct EnrolmentTests {
    let scene: Scene

    init() throws { scene = try Scene() }

    @Test("By QR code: the user types the digits, and the container becomes active")
    func scanned() async throws {
        let device = scene.device()
        let enrolment = try await device.enrol(scene.invite(), name: "Ana's laptop", pushID: "push-1")
        #expect(enrolment.issuerName == "Bank of Tests" && enrolment.userName == "ana")
        #expect(enrolment.state == .unconfirmed)
        let digits = try #require(enrolment.digits)
        #expect(digits.count == 9)
        #expect(try await scene.server.type("0000 0000") == (digits == "0000 0000"))
        #expect(try await device.container(enrolment.containerID).digits == digits)
        #expect(try await scene.server.type(digits))
        let container = try await device.container(enrolment.containerID)
        #expect(try await container.status().state == .active)
        let active = try await device.container(enrolment.containerID)
        #expect(active.state == .active && active.digits == nil && active.name == "Ana's laptop")
        #expect(active.userID == "user-1" && active.serial == "10023" && active.issuer == scene.server.issuer)
        #expect(active.keys(usage: .sign).map(\.label) == ["payments"])
        #expect(active.keys(usage: .transport).count == 1 && active.keys(label: "device").count == 1)
        #expect(active.keys(usage: .auth).isEmpty)
        #expect(await scene.server.commitments.count == 1)
        #expect(await scene.server.enrolments.count == 1)
        #expect(await scene.keys.keyNames().count == 3)
        #expect(
            await scene.server.asked == [
                "/configuration", "/device/provision/start", "/device/provision/commit", "/device/provision/complete",
                "/device/provision/confirm", "/device/status",
            ])
    }

    @Test("The device waits for the digits, or hears that the enrolment has ended", arguments: [true, false])
    func waiting(isTyped: Bool) async throws {
        let device = scene.device()
        let enrolment = try await device.enrol(scene.invite())
        let container = try await device.container(enrolment.containerID)
        let active = Task { try await container.activated() }
        while scene.clock.sleeperCount == 0 { await Task.yield() }
        if isTyped {
            #expect(try await scene.server.type(enrolment.digits))
        } else {
            await scene.server.set(state: .void)
        }
        scene.clock.advance(by: 2)
        if isTyped {
            #expect(try await active.value.state == .active)
        } else {
            await #expect(throws: SigningError(.enrolmentVoid)) { try await active.value }
            #expect(await scene.isEmpty)
        }
    }

    @Test("Before the digits a list says that they are missing; the same refusal of an enrolment that has ended stays")
    func beforeTheDigits() async throws {
        let device = scene.device()
        let container = try await device.container(device.enrol(scene.invite()).containerID)
        let refusal = ScriptedServer.Refusal(status: 410, code: "enrolment_void")
        await scene.server.refuse("/device/transactions/list", refusal, times: 2)
        let error = await #expect(throws: SigningError(.notActive)) { try await container.transactionIDs() }
        #expect(error?.isTransient == true && error?.detail.contains("digits") == true)
        await scene.server.set(state: .void)
        await #expect(throws: SigningError(.enrolmentVoid)) { try await container.transactionIDs() }
        #expect(await scene.isEmpty)
    }

    @Test("By typed code, with the issuer's URL")
    func typed() async throws {
        let code = scene.server.code.shown.reveal().lowercased()
        let invite = try SigningInvite(typed: code, issuer: scene.server.issuer)
        #expect(invite.host == "am.example")
        let enrolment = try await scene.device().enrol(invite)
        #expect(try await scene.server.type(enrolment.digits))
        #expect(throws: SigningError(.invalidArgument)) {
            try SigningInvite(typed: String(code.dropLast()) + "b", issuer: scene.server.issuer)
        }
        #expect(throws: SigningError(.invalidArgument)) { try SigningInvite(typed: code, issuer: "http://am.example") }
        #expect(throws: SigningError(.invalidArgument)) { try SigningInvite(scanned: "https://evil.example") }
    }

    @Test(
        "An invite of another identity key, by another server, or of an unknown issuer is refused before a key is made")
    func trust() async throws {
        let other = try ScriptedServer()
        let forged = try SigningInvite(scanned: await other.invite())
        await #expect(throws: SigningError(.untrustedIdentity)) { try await scene.device().enrol(forged) }
        let thief = try SoftwareSigningKey.generate(.es256)
        await scene.server.sign("invite", with: thief)
        let unsigned = try await scene.invite()
        await #expect(throws: SigningError(.serverAuthentication)) { try await scene.device().enrol(unsigned) }
        await scene.server.sign("invite", with: nil)
        let strict = scene.device(configuration: SigningDeviceConfiguration(issuers: ["https://other.example"]))
        await #expect(throws: SigningError(.untrustedIssuer)) { try await strict.enrol(scene.invite()) }
        #expect(await scene.keys.keyNames().isEmpty)
        #expect(await scene.store.names().isEmpty)
        let known = scene.device(configuration: SigningDeviceConfiguration(issuers: [scene.server.issuer]))
        #expect(try await known.enrol(scene.invite()).digits != nil)
    }

    @Test("A device with a container of the issuer takes only the pinned identity key, or its successor")
    func pinned() async throws {
        let device = scene.device()
        _ = try await scene.enrolled(device)
        let other = try ScriptedServer()
        // The same issuer's name, another server.
        let stranger = SigningDevice(
            store: scene.store, keys: scene.keys, transport: other.transport, clock: scene.clock)
        await #expect(throws: SigningError(.untrustedIdentity)) {
            try await stranger.enrol(SigningInvite(scanned: other.invite()))
        }
        await #expect(throws: SigningError(.untrustedIdentity)) {
            try await stranger.enrol(SigningInvite(typed: other.code.shown.reveal(), issuer: other.issuer))
        }
        #expect(try await stranger.containers().count == 1)
        // An invite that the server has signed, but that names another identity key than the pinned one.
        var second = try Scene()
        (second.store, second.keys) = (scene.store, scene.keys)
        await second.server.share(keysOf: scene.server)
        await second.server.edit("invite") { $0["idk"] = .string(SigningHash(sha256: []).text) }
        await #expect(throws: SigningError(.untrustedIdentity)) { try await second.device().enrol(second.invite()) }
        #expect(await second.server.asked == ["/configuration"])
        await second.server.edit("invite", nil)
        #expect(try await second.device().enrol(second.invite()).digits != nil)
    }

    @Test("The mode silent, and offers that break a rule, are refused with a clear error")
    func offers() async throws {
        await scene.server.edit("offer") { offer in
            offer["keys"] = [
                ["usage": "device", "label": "device", "policy": "device"],
                ["usage": "transport", "label": "transport", "policy": "device"],
                ["usage": "sign", "label": "payments", "policy": "pin", "slot": "signing"],
            ]
            offer["slots"] = [["slot": "signing", "mode": "silent", "gen": 0]]
            offer["policies"] = [
                ["id": "device", "type": "device"],
                [
                    "id": "pin", "type": "password", "mode": "silent", "kdf": "$scrypt$ln=15,r=8,p=1",
                    "password": [
                        "minLength": 6, "maxLength": 12, "sequences": false, "common": false, "history": 0, "minAge": 0,
                        "maxAge": 0, "cache": 0,
                    ], "lock": ["type": "none"],
                ],
            ]
        }
        let device = scene.device()
        let invite = try await scene.invite()
        await #expect(throws: SigningError(.unsupportedOperation)) { try await device.enrol(invite) }
        await scene.server.edit("offer", nil)
        await scene.server.offer(keys: [
            ["usage": "device", "label": "device", "policy": "device"],
            ["usage": "device", "label": "second", "policy": "device"],
        ])
        await #expect(throws: SigningError(.offerRefused)) { try await device.enrol(invite) }
        await scene.server.offer(keys: [
            ["usage": "device", "label": "device", "policy": "device"],
            ["usage": "transport", "label": "transport", "policy": "device"],
        ])
        for edit: ScriptedServer.Edit in [
            { $0["identity"] = .string(SigningHash(sha256: []).text) }, { $0["pid"] = $0["did"] },
        ] {
            await scene.server.edit("offer", edit)
            await #expect(throws: SigningError(.offerRefused)) { try await device.enrol(invite) }
        }
        // A typed code without digits would leave the identity key unproved.
        await scene.server.edit("offer") { $0["commit"] = "exchange" }
        let unfinished = try #require(await device.unfinishedEnrolments().first)
        try await device.abandonEnrolment(unfinished.id)
        let typed = try SigningInvite(typed: scene.server.code.shown.reveal(), issuer: scene.server.issuer)
        await #expect(throws: SigningError(.offerRefused)) { try await device.enrol(typed) }
    }

    @Test(
        "A reply to another request, for another device, of another issuer, type or time, or by another key counts as none",
        arguments: ["offer", "nonce", "enrolled", "status"])
    func replies(name: String) async throws {
        let device = scene.device()
        let invite = try await scene.invite()
        let edits: [(String, ScriptedServer.Edit)] = [
            ("rqh", { $0["rqh"] = .string(SigningHash.request("other").text) }),
            ("aud", { $0["aud"] = .string(SigningID(random: SystemRandom()).text) }),
            ("iss", { $0["iss"] = "https://other.example" }), ("early", { $0["iat"] = 899 }),
            ("late", { $0["iat"] = 90_001 }), ("member", { $0["extra"] = 1 }),
        ]
        for (what, edit) in edits {
            await scene.server.edit(name, edit)
            await #expect(throws: SigningError(.serverAuthentication), "\(what)") { try await device.enrol(invite) }
        }
        await scene.server.edit(name, nil)
        await scene.server.sign(name, with: try .generate(.es256))
        await #expect(throws: SigningError(.serverAuthentication)) { try await device.enrol(invite) }
        await scene.server.sign(name, with: nil)
        // What was dropped did no harm.
        let enrolment = try await device.enrol(invite)
        #expect(try await scene.server.type(enrolment.digits))
        #expect(await scene.server.commitments.count == 1)
    }

    @Test("A refused code is an error with HID's number, and the enrolment can be given up")
    func refused() async throws {
        await scene.server.refuse("/device/provision/start", .init(status: 404, code: "invalid_code"))
        let device = scene.device()
        let invite = try await scene.invite()
        let error = await #expect(throws: SigningError.self) { try await device.enrol(invite) }
        #expect(error?.code == .invalidCode && error?.code.hid == 3 && error?.remaining == 2)
        let unfinished = try await device.unfinishedEnrolments()
        #expect(unfinished.count == 1)
        #expect(try await device.containers().isEmpty)
        try await device.abandonEnrolment(unfinished[0].id)
        #expect(await scene.isEmpty)
        await #expect(throws: SigningError(.invalidContainer)) { try await device.resumeEnrolment(unfinished[0].id) }
    }

    @Test("A name that cannot be shown and a provider that the protocol cannot name are refused at once")
    func arguments() async throws {
        let invite = try await scene.invite()
        await #expect(throws: SigningError(.invalidArgument)) {
            try await scene.device().enrol(invite, name: "a\u{202E}b")
        }
        await #expect(throws: SigningError(.invalidArgument)) { try await scene.device().enrol(invite, name: "") }
        let odd = SigningDevice(
            store: scene.store, keys: MemoryKeyProvider(kind: "Strange kind"), transport: scene.server.transport)
        await #expect(throws: SigningError(.unsupportedDevice)) { try await odd.enrol(invite) }
        #expect(await scene.server.asked.isEmpty)
    }

    @Test("Many calls with one invite at once are one enrolment, also from several device objects")
    func race() async throws {
        let invite = try await scene.invite()
        let devices = [scene.device(), scene.device()]
        let digits = try await withThrowingTaskGroup(of: String?.self) { group in
            for index in 0..<10 { group.addTask { try await devices[index % 2].enrol(invite).digits } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1 ?? "") }
        }
        #expect(digits.count == 1)
        #expect(await scene.server.commitments.count == 1)
        #expect(await scene.keys.keyNames().count == 3)
        #expect(try await scene.device().containers().count == 1)
    }

    @Test("What a device says of itself is left out where it cannot be shown")
    func info() async throws {
        var configuration = SigningDeviceConfiguration()
        configuration.info = .init(brand: "Debian", model: "a\u{202E}b", system: String(repeating: "x", count: 65))
        _ = try await scene.device(configuration: configuration).enrol(scene.invite())
        #expect(await scene.server.info == ["brand": "Debian", "sdk": "assent", "keystore": "software"])
    }

    @Test("An old nonce and an old encryption key are repeated once, with new ones")
    func freshness() async throws {
        let device = scene.device()
        await scene.server.refuse(
            "/device/provision/commit", .init(status: 401, code: "use_nonce"), .init(status: 400, code: "unknown_key"))
        let enrolment = try await device.enrol(scene.invite())
        #expect(try await scene.server.type(enrolment.digits))
        #expect(await scene.server.asked.count { $0 == "/configuration" } == 2)
        let container = try await device.container(enrolment.containerID)
        await scene.server.refuse(
            "/device/status", .init(status: 401, code: "use_nonce"), .init(status: 401, code: "use_nonce"))
        await #expect(throws: SigningError(.init(rawValue: "use_nonce"))) { try await container.status() }
    }
}
