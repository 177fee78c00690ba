import AssentEngine
import Foundation
import Logging

/// How many connections there may be at once, to server and gateway together.
struct ConnectionLimits: Sendable, Hashable {
    /// From everywhere.
    let total: Int

    /// From one IPv4 address, or from one /64 network of IPv6 addresses; `nil` for a share of what is left.
    let perAddress: Int?

    /// So many that files, the database and the gateway's own connections keep a quarter of the process's descriptors,
    /// and at least 64.
    init(descriptors: Int, perAddress: Int? = nil) {
        total = max(1, descriptors - max(64, descriptors / 4))
        self.perAddress = perAddress
    }

    /// The places.
    var shares: Shares<String?> { Shares(total: total, perHolder: perAddress) }

    /// How many descriptors this process may have.
    static var processDescriptors: Int {
        var limit = rlimit()
        #if os(Linux)
        let failed = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0
        #else
        let failed = getrlimit(RLIMIT_NOFILE, &limit) != 0
        #endif
        return failed ? 1024 : Int(clamping: min(limit.rlim_cur, 1 << 20))
    }
}

/// Counts connections, and says once when they run out.
struct ConnectionCount {
    /// A line for the log.
    struct Notice {
        let text: String
        let metadata: Logger.Metadata
    }

    private let limits: ConnectionLimits
    private var shares: Shares<String?>
    private var hasToldTotal = false
    /// How many connections those had that were told of.
    private var toldAddresses: [String?: Int] = [:]

    init(_ limits: ConnectionLimits) {
        self.limits = limits
        shares = limits.shares
    }

    /// Counts a connection unless it is one too many. There is a notice for the first one that is refused; for the next
    /// only after a tenth of the places, or half of the address's, were free again.
    mutating func enter(_ address: String?) -> (isAdmitted: Bool, notice: Notice?) {
        if shares.enter(address) { return (true, nil) }
        guard shares.taken < limits.total else {
            defer { hasToldTotal = true }
            return (false, hasToldTotal ? nil : noticeOfTotal)
        }
        guard toldAddresses[address] == nil else { return (false, nil) }
        toldAddresses[address] = shares.count(of: address)
        return (false, notice(of: address))
    }

    /// A connection that was counted has ended.
    mutating func leave(_ address: String?) {
        shares.leave(address)
        if let told = toldAddresses[address], shares.count(of: address) <= told / 2 { toldAddresses[address] = nil }
        if shares.taken <= limits.total - limits.total / 10 { hasToldTotal = false }
    }

    private var noticeOfTotal: Notice {
        Notice(
            text: "new connections are refused: all places are taken. Raise the limit of open files of the process",
            metadata: ["connections": "\(limits.total)"])
    }

    private func notice(of address: String?) -> Notice {
        Notice(
            text: limits.perAddress == nil
                ? "new connections of one address are refused: it has its share. If it is a load balancer, name it in "
                    + "trustedProxies"
                : "new connections of one address are refused: it has connectionsPerAddress open",
            metadata: ["address": "\(address ?? "none")", "open": "\(shares.count(of: address))"])
    }
}
