/// Where a PostgreSQL database is, who signs in there and how much may be asked of it at once.
package struct PostgreSQLConfiguration: Sendable, Hashable {
    /// One server of the database.
    package struct Host: Sendable, Hashable {
        /// A host's name or address, or the directory of a Unix socket, which begins with `/`.
        package let name: String

        /// The port; for a Unix socket the number at the end of its name.
        package let port: Int

        /// A server.
        package init(_ name: String, port: Int = 5432) {
            self.name = name
            self.port = port
        }

        /// Whether only this machine can be between us and the server.
        package var isLocal: Bool {
            name.hasPrefix("/") || name == "localhost" || name == "::1"
                || (name.hasPrefix("127.") && name.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) })
        }
    }

    /// How the connection is kept from others.
    package enum TLS: Sendable, Hashable {
        /// `verify-full`: the server's certificate must be valid for the host's name, under the authorities of a PEM
        /// file; `nil` stands for the system's.
        case verified(authority: String?)
        /// Nothing is encrypted: anybody on the way can read and change everything.
        case off
    }

    /// The servers, in the order in which they are tried. The first that can be written to is used.
    package var hosts: [Host]

    /// The name of the database.
    package var database: String

    /// The role that signs in.
    package var user: String

    /// A file with the role's password on its only line, which is read anew for each connection; `nil` if the server
    /// knows the role in another way.
    package var passwordFile: String?

    /// The TLS that was asked for; `nil` for ``TLS/verified(authority:)`` with the system's authorities, except on
    /// hosts that are local.
    package var tls: TLS?

    /// Connections of this process at one time.
    package var connections = 10

    /// Calls that may wait for a connection.
    package var waitingCalls = 500

    /// Milliseconds that a call waits for a connection.
    package var waitLimit = 5_000

    /// Milliseconds until a server that does not accept a connection is given up.
    package var connectLimit = 5_000

    /// Milliseconds that one statement may take.
    package var statementLimit = 10_000

    /// Milliseconds that one statement may wait for a lock.
    package var lockLimit = 5_000

    /// Milliseconds that a transaction may stand still before its `COMMIT` comes. Less than ``outcomeLimit``: then it
    /// is known in time that a lost `COMMIT` does not come.
    package var idleLimit = 5_000

    /// Milliseconds for the answer to `COMMIT`, which comes late when a standby has to confirm it.
    package var commitLimit = 5_000

    /// Milliseconds for finding out what became of a transaction whose connection was lost while it was committed.
    package var outcomeLimit = 10_000

    /// Milliseconds for which a commit that confirms others may be outstanding before nothing more is begun.
    package var overdueLimit = 1_000

    /// Milliseconds for which connections that are counted may still be those of a node that has just ended.
    package var endingLimit = 1_000

    /// Whether a commit must be on a standby as well before it is acknowledged: a server that does not say so is not
    /// written to.
    package var requiresStandby = false

    /// Which node this is, and where it remembers which history of the database it has used; `nil` for a program that
    /// remembers nothing from one run to the next.
    package var node: Node?

    /// Whether the database is taken as it is, although it may lack what this node has seen: after the restore of a
    /// backup. A generation begins that tells the other nodes so.
    package var adoptsHistory = false

    /// Milliseconds between two looks at all servers.
    package var watchInterval = 5_000

    /// Milliseconds that a look at all servers waits for each of them. One that is late is taken for unreachable.
    package var surveyLimit = 2_000

    /// Milliseconds for which a node's id that another process has is asked for again: the server hears a moment later
    /// that a process has ended.
    package var holdLimit = 3_000

    /// Milliseconds that a stop waits for the node's last mark. A server that answers needs a small part of it.
    package var stopLimit = 2_000

    /// A node with a data directory.
    package struct Node: Sendable, Hashable {
        /// Its id.
        package let id: String
        /// What it remembers of the database.
        package let memory: NodeMemoryFile

        /// A node.
        package init(id: String, memory: NodeMemoryFile) {
            self.id = id
            self.memory = memory
        }
    }

    /// Lets everything that is waited for take so many seconds: for tests, which must not fail on a busy machine. A
    /// transaction that stands still is ended as before, since others wait for that where its `COMMIT` was lost; and a
    /// stop waits as before, since the server may have gone first.
    package mutating func bePatient(seconds: Int) {
        raiseWaits(toSeconds: seconds)
        let limit = seconds * 1_000
        (commitLimit, outcomeLimit, overdueLimit, surveyLimit) = (limit, limit, limit, limit)
    }

    /// Lets a server that runs, and others that use it, take so many seconds at least: for programs that tests start on
    /// a busy machine. What became of a lost `COMMIT` is looked for as usual, and so is a commit that confirms others:
    /// a test may take the server away for a while, and calls that wait for a connection then wait for these.
    package mutating func raiseWaits(toSeconds seconds: Int) {
        let least = seconds * 1_000
        (waitLimit, connectLimit) = (max(waitLimit, least), max(connectLimit, least))
        (statementLimit, lockLimit) = (max(statementLimit, least), max(lockLimit, least))
        holdLimit = max(holdLimit, least)
    }

    /// The TLS to one of the hosts; `nil` means: if the server offers it, and nothing is verified.
    package func tls(to host: Host) -> TLS? { tls ?? (host.isLocal ? nil : .verified(authority: nil)) }

    /// A database.
    package init(
        hosts: [Host], database: String, user: String, passwordFile: String? = nil, tls: TLS? = nil
    ) {
        self.hosts = hosts
        self.database = database
        self.user = user
        self.passwordFile = passwordFile
        self.tls = tls
    }
}
