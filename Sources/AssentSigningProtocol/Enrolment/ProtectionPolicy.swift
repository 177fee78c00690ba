package import AssentCore

/// How keys are protected: an entry of an offer's `policies`.
package struct ProtectionPolicy: MessagePart {
    /// What opens a key.
    package enum Kind: String, Hashable, MemberValue, CaseIterable {
        case device
        case password
        case bioPassword
    }

    /// What a policy with a password asks for.
    package struct Password: Sendable {
        package let mode: PasswordMode
        package let cost: PasswordCost
        package let rules: PasswordRules
        package let lock: PasswordLock

        package init(mode: PasswordMode, cost: PasswordCost, rules: PasswordRules, lock: PasswordLock) {
            (self.mode, self.cost, self.rules, self.lock) = (mode, cost, rules, lock)
        }
    }

    /// Its name in the offer.
    package let id: String
    package let kind: Kind
    /// `nil` for keys without a password.
    package let password: Password?

    /// A policy for keys without a password.
    package init(deviceOnly id: String) { (self.id, kind, password) = (id, .device, nil) }

    /// A policy with a password.
    package init(id: String, biometry: Bool, password: Password) {
        (self.id, kind, self.password) = (id, biometry ? .bioPassword : .password, password)
    }

    /// Takes what the kind of policy has.
    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        id = try reader.read("id", .label)
        kind = try reader.read("type")
        guard kind != .device else {
            password = nil
            return
        }
        let mode: PasswordMode = try reader.read("mode")
        password = Password(
            mode: mode, cost: try reader.read("kdf"), rules: try reader.read("password"),
            lock: mode == .local ? .local(try reader.read("lock")) : .assisted(try reader.read("lock")))
    }

    package var members: JSONObject {
        JSONObject(omittingNil: [
            "id": .string(id), "type": kind.json, "mode": password?.mode.json, "kdf": password?.cost.json,
            "password": password?.rules.json, "lock": password?.lock.json,
        ])
    }
}

/// The cost of scrypt (RFC 7914) for a password.
package struct PasswordCost: Hashable, Sendable {
    /// log₂ N, 14 to 18.
    package let logN: Int
    /// r, 8 to 16.
    package let r: Int
    /// p, 1 to 4.
    package let p: Int

    /// A cost; `nil` when it is not one that is allowed.
    package init?(logN: Int, r: Int, p: Int) {
        guard (14...18).contains(logN), (8...16).contains(r), (1...4).contains(p) else { return nil }
        (self.logN, self.r, self.p) = (logN, r, p)
    }

    /// Reads the one text that a cost has.
    package init?(_ text: String) {
        for logN in 14...18 {
            for r in 8...16 {
                for p in 1...4 where StrictJSON.same(text, "$scrypt$ln=\(logN),r=\(r),p=\(p)") {
                    self.init(logN: logN, r: r, p: p)
                    return
                }
            }
        }
        return nil
    }

    /// As it stands in a policy.
    package var text: String { "$scrypt$ln=\(logN),r=\(r),p=\(p)" }
}

extension PasswordCost: MemberValue {
    package init(_ json: JSONValue, at place: String) throws(SigningProtocolError) {
        guard let cost = PasswordCost(try MemberRule.ascii(1...64).read(json, place)) else {
            throw .invalid(place, "is not scrypt at a cost that is allowed")
        }
        self = cost
    }

    package var json: JSONValue { .string(text) }
}

/// Which passwords a policy allows. Lengths are counted in Unicode scalars.
public struct PasswordRules: MessagePart, Hashable {
    /// The shortest.
    public package(set) var minLength: Int
    /// The longest.
    public package(set) var maxLength: Int
    /// How many characters of a kind there must be.
    public package(set) var least: [PasswordCharacters: Int] = [:]
    /// How many characters of a kind there may be.
    public package(set) var most: [PasswordCharacters: Int] = [:]
    /// Whether runs and repetitions are allowed.
    public package(set) var sequences = true
    /// Whether common ones and dates are allowed.
    public package(set) var common = true
    /// How many earlier passwords may not come back.
    public package(set) var history = 0
    /// Days before it may be changed.
    public package(set) var minAge = 0
    /// Days after which it must be changed; 0: never.
    public package(set) var maxAge = 0
    /// Seconds for which the device may remember it.
    public package(set) var cache = 0

    /// Rules about the length only.
    package init(minLength: Int, maxLength: Int) { (self.minLength, self.maxLength) = (minLength, maxLength) }

    private typealias Place<Value> = any WritableKeyPath<Self, Value> & Sendable

    private static let counts: [(prefix: String, place: Place<[PasswordCharacters: Int]>)] = [
        ("min", \.least), ("max", \.most),
    ]

    private static let numbers: [(name: String, place: Place<Int>, bounds: ClosedRange<Int>)] = [
        ("history", \.history, 0...24), ("minAge", \.minAge, 0...3650), ("maxAge", \.maxAge, 0...3650),
        ("cache", \.cache, 0...3600),
    ]

    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        minLength = try reader.read("minLength", .integer(4...64))
        maxLength = try reader.read("maxLength", .integer(4...128))
        guard minLength <= maxLength else { throw .invalid(reader.path("maxLength"), "is less than minLength") }
        for kind in PasswordCharacters.allCases {
            for (prefix, place) in Self.counts where reader.has(prefix + kind.rawValue) {
                self[keyPath: place][kind] = try reader.read(prefix + kind.rawValue, .integer(0...128))
            }
        }
        sequences = try reader.read("sequences")
        common = try reader.read("common")
        for (name, place, bounds) in Self.numbers { self[keyPath: place] = try reader.read(name, .integer(bounds)) }
    }

    package var members: JSONObject {
        var members: JSONObject = ["minLength": .integer(minLength), "maxLength": .integer(maxLength)]
        for kind in PasswordCharacters.allCases {
            for (prefix, place) in Self.counts { members[prefix + kind.rawValue] = self[keyPath: place][kind]?.json }
        }
        members["sequences"] = .bool(sequences)
        members["common"] = .bool(common)
        for (name, place, _) in Self.numbers { members[name] = self[keyPath: place].json }
        return members
    }
}

/// What happens after wrong passwords, as the server's policy says.
public enum PasswordLock: Sendable, Hashable {
    /// Where the device checks a guess.
    case local(LocalPasswordLock)
    /// Where the server counts guesses.
    case assisted(AssistedPasswordLock)

    var json: JSONValue {
        switch self {
        case .local(let lock): lock.json
        case .assisted(let lock): lock.json
        }
    }
}

/// What a device does after wrong passwords of a `local` slot.
public enum LocalPasswordLock: MessagePart, Hashable {
    /// Nothing.
    case none
    /// It waits, longer each time: `seconds`·2^(*i*−1) after failure *i*, *i* at most `counter`.
    case delay(seconds: Int, counter: Int)
    /// It destroys what the password opens after so many failures in a row.
    case counter(max: Int)

    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        switch try reader.read("type", .ascii(1...16)) {
        case "none": self = .none
        case "delay":
            self = .delay(
                seconds: try reader.read("delay", .integer(1...3600)),
                counter: try reader.read("counter", .integer(1...16)))
        case "counter": self = .counter(max: try reader.read("max", .integer(1...10)))
        default: throw .invalid(reader.path("type"), "has a value that is not known")
        }
    }

    package var members: JSONObject {
        switch self {
        case .none: ["type": "none"]
        case .delay(let seconds, let counter):
            ["type": "delay", "delay": .integer(seconds), "counter": .integer(counter)]
        case .counter(let max): ["type": "counter", "max": .integer(max)]
        }
    }
}

/// What a server does after evaluations of an `assisted` slot that were never confirmed.
public struct AssistedPasswordLock: MessagePart, Hashable {
    /// Tries until the slot is locked, 1 to 10; then the user has to authenticate at the issuer.
    public let max: Int
    /// Evaluations without the right password until the keys are lost for ever, `max` to 100.
    public let cap: Int
    /// Seconds to wait after the first, second, … try; the last one repeats.
    public let delays: [Int]

    package init(max: Int, cap: Int, delays: [Int]) { (self.max, self.cap, self.delays) = (max, cap, delays) }

    package init(reading reader: inout MemberReader) throws(SigningProtocolError) {
        guard try reader.read("type", .ascii(1...16)) == "counter" else {
            throw .invalid(reader.path("type"), "has a value that is not known")
        }
        max = try reader.read("max", .integer(1...10))
        cap = try reader.read("cap", .integer(max...100))
        let place = reader.path("delays")
        let elements = try MemberRule<[Int]>.elements(reader.value("delays"), 0...16, at: place)
        delays = elements.compactMap { try? Int($0, at: place) }
        guard delays.count == elements.count, delays.allSatisfy({ $0 <= 86400 }) else {
            throw .invalid(place, "has a value that is not 0 to 86400 seconds")
        }
    }

    package var members: JSONObject {
        ["type": "counter", "max": .integer(max), "cap": .integer(cap), "delays": .array(delays.map(\.json))]
    }
}
