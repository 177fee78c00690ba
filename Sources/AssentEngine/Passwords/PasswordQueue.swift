import AssentCore
import Crypto

/// On whose account a password is derived. Nobody's checks hold up everybody else's.
package struct PasswordCaller: Sendable, Hashable {
    /// The client's address; `nil` for the server itself.
    package let address: String?

    /// Whose password it is: the hash of realm and user name.
    package let user: String

    /// A caller.
    package init(address: String?, user: String) {
        self.address = address
        self.user = user
    }

    /// What stands for a user, whether or not they exist.
    static func hash(username: String, realm: String) -> String {
        Base64URL.encode(Array(SHA256.hash(data: Array("\(realm)\u{0}\(username)".utf8))))
    }

    /// The name under which the attempts of all addresses are counted.
    var counter: String { "password:\(user)" }

    /// The name under which those of this address are.
    var counterHere: String { "\(counter)@\(address ?? "")" }

    /// The server itself, for example when it stores the users of its configuration.
    package static let server = PasswordCaller(address: nil, user: "")
}

/// How many password checks may be in progress, waiting ones included.
///
/// An address that checks all it may leaves room for others, and within an address a user does.
struct PasswordAdmission: Sendable {
    private var addresses: Shares<String?>
    private var users: [PasswordCaller: Int] = [:]
    /// Whether nothing is taken in any more.
    private(set) var isClosed = false

    /// - Parameters:
    ///   - total: how many there may be.
    ///   - perAddress: how many one address may have; `nil` for a share.
    init(total: Int, perAddress: Int? = nil) {
        addresses = Shares(total: total, perHolder: perAddress)
    }

    /// How many there may be.
    var limit: Int { addresses.total }

    /// How many there are.
    var total: Int { addresses.taken }

    /// Takes one more in, unless that passes the share of the address, or the user's within it: two for each place
    /// that is left to others there.
    mutating func enter(_ caller: PasswordCaller) -> Bool {
        let ofUser = users[caller, default: 0]
        guard !isClosed, ofUser < 2 * addresses.left(for: caller.address), addresses.enter(caller.address) else {
            return false
        }
        users[caller] = ofUser + 1
        return true
    }

    /// Lets one go that ``enter(_:)`` took in.
    mutating func leave(_ caller: PasswordCaller) {
        addresses.leave(caller.address)
        let left = users[caller, default: 1] - 1
        users[caller] = left > 0 ? left : nil
    }

    /// Takes nothing in any more.
    mutating func close() { isClosed = true }
}

/// Values that wait, served in turns: one of each key, and those of one key in the order in which they came.
struct Turns<Key: Hashable, Value> {
    /// The keys that have something waiting; the first one's turn is next.
    private var order: [Key] = []
    private var waiting: [Key: [Value]] = [:]

    var isEmpty: Bool { order.isEmpty }

    /// Lets `value` wait. A key that has nothing waiting gets the last turn.
    mutating func append(_ value: Value, for key: Key) {
        if waiting[key] == nil { order.append(key) }
        waiting[key, default: []].append(value)
    }

    /// Takes the value whose turn it is; `nil` when nothing waits.
    mutating func next() -> (key: Key, value: Value)? {
        guard let key = order.first, var values = waiting[key], !values.isEmpty else { return nil }
        order.removeFirst()
        let value = values.removeFirst()
        waiting[key] = values.isEmpty ? nil : values
        if !values.isEmpty { order.append(key) }
        return (key, value)
    }
}

/// Work that waits for a thread: addresses take turns, and within an address its users do.
struct PasswordQueue<Work> {
    private var addresses = Turns<String?, Void>()
    private var users: [String?: Turns<String, Work>] = [:]

    /// How much waits.
    private(set) var count = 0

    /// Lets `work` wait.
    mutating func append(_ work: Work, for caller: PasswordCaller) {
        count += 1
        addresses.append((), for: caller.address)
        users[caller.address, default: Turns()].append(work, for: caller.user)
    }

    /// Takes the work whose turn it is; `nil` when nothing waits.
    mutating func next() -> Work? {
        guard let turn = addresses.next(), let work = users[turn.key]?.next()?.value else { return nil }
        if users[turn.key]?.isEmpty == true { users[turn.key] = nil }
        count -= 1
        return work
    }
}
