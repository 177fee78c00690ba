import AssentCore
import AssentJOSE
import AssentSigningProtocol
import TestSupport
import Testing

@Suite("Transaction signing: what every reader refuses")
struct RefusalTests {
    let vectors: Vectors

    init() throws { vectors = try Vectors.load() }

    @Test("The negative examples of the page")
    func negatives() throws {
        let key = try vectors.publicKey("device")
        for (name, compact) in vectors.negatives {
            #expect(throws: SigningProtocolError.self, "\(name)") { try SignedMessage<Possession>(compact, key: key) }
        }
    }

    @Test("A changed bit anywhere in a signed message", arguments: MessageReading.all)
    func bits(reading: MessageReading) async throws {
        let message = try #require(vectors.messages.first { $0.name == reading.name })
        let key = try vectors.publicKey(message.signer)
        let parts = try CompactParts(message.compact)
        for part in 0..<3 {
            // A bit of every byte of the signature, and of every third byte elsewhere: each byte is as good as its
            // neighbour, and a verification takes its time. In a long run, each bit.
            for index in stride(from: 0, to: parts.parts[part].count, by: part == 2 || Soak.isOn ? 1 : 3) {
                // Others wait for these threads.
                await Task.yield()
                for bit in Soak.isOn ? 0..<8 : (index % 8)..<(index % 8 + 1) {
                    var changed = parts
                    changed.parts[part][index] ^= 1 << UInt8(bit)
                    #expect(throws: SigningProtocolError.self, "part \(part), byte \(index), bit \(bit)") {
                        try reading.read(changed.text, key)
                    }
                }
            }
        }
    }

    @Test("A message that is cut off, extended, padded or spaced", arguments: MessageReading.all)
    func lengths(reading: MessageReading) throws {
        let message = try #require(vectors.messages.first { $0.name == reading.name })
        let key = try vectors.publicKey(message.signer)
        let text = message.compact
        let parts = try CompactParts(text)
        var variants = [
            "", ".", "..", text + ".", "." + text, text + "=", text + " ", " " + text, text + "\n", text + "A",
            text + ".AAAA", text.replacing(".", with: ".."), String(text.dropLast()), String(text.dropFirst()),
            text.uppercased(), text + "\u{301}",
        ]
        for length in stride(from: 1, to: text.utf8.count, by: 97) { variants.append(String(text.prefix(length))) }
        for part in 0..<3 {
            var short = parts
            short.parts[part].removeLast()
            var long = parts
            long.parts[part].append(0)
            variants += [short.text, long.text]
        }
        for variant in variants {
            #expect(throws: SigningProtocolError.self) { try reading.read(variant, key) }
        }
    }

    @Test("Headers that are not exactly alg, typ and kid, under a good signature", arguments: MessageReading.all)
    func headers(reading: MessageReading) async throws {
        let message = try #require(vectors.messages.first { $0.name == reading.name })
        let key = try vectors.signingKey(message.signer)
        let publicKey = try ProtocolKey(key)
        let payload = try CompactParts(message.compact).parts[1]
        let kid = publicKey.thumbprint.text
        let typ = reading.type.rawValue
        let other = MessageType.allCases.filter { $0 != reading.type }.map {
            #"{"alg":"ES256","typ":"\#($0.rawValue)","kid":"\#(kid)"}"#
        }
        let headers =
            other + [
                #"{"alg":"ES256","typ":"\#(typ.uppercased())","kid":"\#(kid)"}"#,
                #"{"alg":"ES256","typ":"application/\#(typ)","kid":"\#(kid)"}"#,
                #"{"alg":"ES384","typ":"\#(typ)","kid":"\#(kid)"}"#, #"{"alg":"none","typ":"\#(typ)","kid":"\#(kid)"}"#,
                #"{"alg":"es256","typ":"\#(typ)","kid":"\#(kid)"}"#, #"{"alg":"ES256","kid":"\#(kid)"}"#,
                #"{"alg":"ES256","typ":"\#(typ)"}"#, #"{"typ":"\#(typ)","kid":"\#(kid)"}"#,
                #"{"alg":"ES256","typ":"\#(typ)","kid":"\#(kid)","cty":"json"}"#,
                #"{"alg":"ES256","typ":"\#(typ)","kid":"\#(kid)","b64":false}"#,
                #"{"alg":"ES256","typ":"\#(typ)","kid":"\#(kid)","crit":["b64"],"b64":true}"#,
                #"{"alg":"ES256","typ":"\#(typ)","kid":"\#(kid)","zip":"DEF"}"#,
                #"{"alg":"ES256","typ":"\#(typ)","kid":"\#(kid)","jku":"https://evil.example"}"#,
                #"{"alg":"ES256","typ":"\#(typ)","kid":"\#(kid)","jwk":\#(publicKey.json.serialized())}"#,
                #"{"alg":"ES256","typ":"\#(typ)","kid":"\#(kid)","x5c":[]}"#,
                #"{"alg":"ES256","typ":"\#(typ)","kid":"../../etc/passwd"}"#,
                #"{"alg":"ES256","typ":"\#(typ)","kid":"\#(kid)\#(kid)"}"#,
                #"{"alg":"ES256","typ":"\#(typ)","kid":"\#(kid)="}"#, #"{"alg":"ES256","typ":"\#(typ)","kid":7}"#,
                #"{"alg":"ES256","typ":"\#(typ)","kid":"\#(kid)","kid":"\#(kid)"}"#, #"[]"#, #""ES256""#, "", "{",
            ]
        for header in headers {
            let text = try await signRaw(header: Array(header.utf8), payload: payload, with: key)
            #expect(throws: SigningProtocolError.self, "\(header)") { try reading.read(text, publicKey) }
        }
        let inAnotherOrder = #" {"kid":"\#(kid)","typ":"\#(typ)","alg":"ES256"} "#
        let good = try await signRaw(header: Array(inAnotherOrder.utf8), payload: payload, with: key)
        #expect(throws: Never.self) { try reading.read(good, publicKey) }
    }

    @Test("A member too many, too few, twice, null, of another type, another version", arguments: MessageReading.all)
    func members(reading: MessageReading) async throws {
        let message = try #require(vectors.messages.first { $0.name == reading.name })
        let key = try vectors.signingKey(message.signer)
        let publicKey = try ProtocolKey(key)
        let header = try CompactParts(message.compact).parts[0]
        let object = try CompactParts(message.compact).object(1)
        func refused(_ payload: [UInt8], _ why: String) async throws {
            let text = try await signRaw(header: header, payload: payload, with: key)
            #expect(throws: SigningProtocolError.self, "\(why)") { try reading.read(text, publicKey) }
        }
        let optional = [
            "slots", "text", "warning", "origin", "match", "reason", "unl", "name", "prev", "unlock", "txh",
        ]
        for name in object.names {
            var changed = object
            changed[name] = nil
            if !optional.contains(name) || name == "slots" {
                try await refused(JSONValue.object(changed).serializedBytes(), "without \(name)")
            }
            for value: JSONValue in [
                nil, -1, "", .number(JSONNumber(1.5) ?? JSONNumber(0)), [[]], ["x": 1], "\u{202E}",
            ] {
                changed = object
                changed[name] = value
                try await refused(JSONValue.object(changed).serializedBytes(), "\(name): \(value.serialized())")
            }
            let double = JSONObject(object.members + object.members.filter { $0.name == name })
            try await refused(JSONValue.object(double).serializedBytes(), "\(name) twice")
        }
        try await refused(
            JSONValue.object(JSONObject(object.members + [.init(name: "extra", value: 1)])).serializedBytes(), "extra")
        var version = object
        version["v"] = 2
        let text = try await signRaw(header: header, payload: JSONValue.object(version).serializedBytes(), with: key)
        #expect(throws: SigningProtocolError(.versionUnsupported, "")) { try reading.read(text, publicKey) }
        let plain = JSONValue.object(object).serialized()
        for (text, why) in [
            (plain + "x", "trailing byte"), ("\u{FEFF}" + plain, "byte order mark"), ("[\(plain)]", "an array"),
            (plain.replacing(#""v":1"#, with: #""v":1.0"#), "fraction"),
            (plain.replacing(#""v":1"#, with: #""v":1e0"#), "exponent"),
            (plain.replacing(#""v":1"#, with: #""v":-1"#), "sign"), ("", "nothing"),
        ] { try await refused(Array(text.utf8), why) }
        try await refused(Array(plain.utf8.dropLast()) + [0xFF, 0x7D], "not UTF-8")
        try await refused(
            Array(plain.dropLast().utf8) + Array((",\"deep\":" + String(repeating: "[", count: 20)).utf8), "deep")
    }

    @Test("A message that is too long")
    func size() async throws {
        let key = try vectors.signingKey("device")
        let publicKey = try ProtocolKey(key)
        let long = String(repeating: " ", count: 49 << 10)
        let payload = try String(decoding: CompactParts(vectors.compact("possession")).parts[1], as: UTF8.self)
        let header = try CompactParts(vectors.compact("possession")).parts[0]
        let text = try await signRaw(header: header, payload: Array((payload + long).utf8), with: key)
        #expect(throws: SigningProtocolError(.tooLarge, "")) { try SignedMessage<Possession>(text, key: publicKey) }
        let proof = try CompactParts(vectors.compact("proof.list"))
        let padded = proof.parts[1] + Array(repeating: 0x20, count: 2 << 10)
        let longProof = try await signRaw(header: proof.parts[0], payload: padded, with: key)
        #expect(throws: SigningProtocolError(.tooLarge, "")) { try SignedMessage<CallProof>(longProof, key: publicKey) }
    }

    @Test("A JWK of another curve, off the curve, with more members or loose base64", arguments: ["start", "enrol"])
    func keys(name: String) async throws {
        let key = try vectors.publicKey("device")
        let good = try #require(key.json.object)
        #expect(try ProtocolKey(.object(good)) == key)
        let p384 = try #require(JWK(publicKeyInfo: SoftwareSigningKey.generate(.es384).publicKeyInfo).json.object)
        let x = try #require(good["x"]?.string.flatMap { Base64URL.decode($0) })
        var variants: [JSONObject] = [p384]
        for (member, value) in [
            ("crv", "P-384"), ("crv", "secp256k1"), ("kty", "OKP"), ("kty", "ec"), ("x", ""), ("y", "AAAA"),
            ("y", .string(Base64URL.encode(x))), ("x", .string((good["x"]?.string ?? "") + "=")),
            ("x", .string(Base64URL.encode([0] + x))),
            ("d", "AAAA"), ("use", "sig"), ("kid", .string(key.thumbprint.text)), ("alg", "ES256"),
        ] as [(String, JSONValue)] where value != good[member] {
            var changed = good
            changed[member] = value
            variants.append(changed)
        }
        for variant in variants {
            #expect(throws: SigningProtocolError(.invalidMember, "")) { try ProtocolKey(.object(variant)) }
        }
        // A message that carries its own key must be signed by that very key.
        let thief = try vectors.signingKey("sign")
        var parts = try CompactParts(vectors.compact(name)).parts
        parts[0] = Array(
            #"{"alg":"ES256","typ":"tsp-\#(name)+jwt","kid":"\#(try ProtocolKey(thief).thumbprint.text)"}"#.utf8)
        let stolen = try await signRaw(header: parts[0], payload: parts[1], with: thief)
        if name == "start" {
            #expect(throws: Never.self) { try UnverifiedMessage<Start>(vectors.compact(name)).verifiedByItself() }
            #expect(throws: SigningProtocolError(.unknownKey, "")) {
                try UnverifiedMessage<Start>(stolen).verifiedByItself()
            }
        } else {
            #expect(throws: Never.self) { try UnverifiedMessage<Enrolment>(vectors.compact(name)).verifiedByItself() }
            #expect(throws: SigningProtocolError(.unknownKey, "")) {
                try UnverifiedMessage<Enrolment>(stolen).verifiedByItself()
            }
        }
    }
}
