import ArgumentParser
import Assent
import AssentCore
import AssentServer
import AssentStore
import Foundation

/// `assent database`
struct DatabaseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "database",
        abstract: "Work on a server's database: back it up, bring it up to date, copy it, adopt it.",
        discussion: """
            Exit status: 0 done, 1 not done, 64 wrong usage, 78 wrong configuration.
            """,
        subcommands: [
            DatabaseBackupCommand.self, DatabaseMigrateCommand.self, DatabaseCopyCommand.self,
            DatabaseAdoptCommand.self,
        ])
}

/// `assent database backup`
struct DatabaseBackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Write all data of a server to a new file, also while it runs.",
        discussion: """
            The file is complete as of one moment, and only you can read it. It is a SQLite file, or of a PostgreSQL database \
            what 'pg_dump --format=custom' writes; that program must be installed. It is read once before the command says \
            that it is done.

            The master key is not in it: keep that in another place. After a restore run 'assent restore-fence'.

            Example:  assent database backup --config assent.yaml /backup/assent.backup
            """)

    @OptionGroup var server: ServerFileOptions

    @Argument(help: "The file to make. There must be none yet.", completion: .file())
    var file: String

    func run() async throws {
        // A file that may not grow is an error of one write, not the end of the process.
        signal(SIGXFSZ, SIG_IGN)
        try await server.run {
            try await ConfiguredBackup.run(ServerConfiguration.load(file: $0), to: file)
        } text: { size in
            "\(file) has \(size) bytes, and can be restored with the master key: keep that in another place."
        } json: { size in
            ["file": .string(file), "bytes": .integer(Int64(size))]
        }
    }
}

/// `assent database migrate`
struct DatabaseMigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate", abstract: "Bring the schema of a server's database up to date, without a server.",
        discussion: """
            A start does the same. All steps happen or none. There is no way back: make a backup first. The server of a \
            SQLite file must be stopped; nodes on PostgreSQL may run, as long as the new schema has what they need.
            """)

    @OptionGroup var server: ServerFileOptions

    func run() async throws {
        try await server.run {
            try await DatabaseMigration.run(ServerConfiguration.load(file: $0))
        } text: {
            $0.text
        } json: {
            $0.json
        }
    }
}

/// `assent database adopt`
struct DatabaseAdoptCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "adopt",
        abstract: "Let a node use a PostgreSQL database that lacks what the node has seen.",
        discussion: """
            A node remembers in its data directory which history of the database it has used, and refuses an old primary, a \
            copy, and a backup. Run this on each node after you have restored a backup or accepted a loss on purpose: \
            what was spent since may be spent again, unless 'assent restore-fence' has run on the database.
            """)

    @OptionGroup var server: ServerFileOptions

    func run() async throws {
        try await server.run {
            try DatabaseAdoption.run(ServerConfiguration.load(file: $0))
        } text: {
            $0.text
        } json: {
            $0.json
        }
    }
}

/// `assent database copy`
struct DatabaseCopyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "copy", abstract: "Copy all data of a stopped server to another database: SQLite or PostgreSQL.",
        discussion: """
            Stop all servers of the source first. The target must be empty; its schema is made. Both files must lead to the \
            same master key. The source is not changed.

            A copy that was broken off goes on when the same command is run again. Until it has ended, no server starts on the \
            target. At the end the rows and the SHA-256 of each table are compared on both sides.

            Example:  assent database copy --config assent.yaml --to assent-postgresql.yaml
            """)

    @Option(
        name: .shortAndLong, help: "The server's file with the database that is copied.",
        completion: .file(extensions: ["yaml", "yml"]))
    var config: String

    @Option(
        name: .long, help: "The server's file with the database that it is copied to.",
        completion: .file(extensions: ["yaml", "yml"]))
    var to: String

    @Flag(name: .long, help: "Print the result as JSON: resumed, and each table's name, rows and sha256.")
    var json = false

    func run() async throws {
        // A file that may not grow is an error of one write, not the end of the process.
        signal(SIGXFSZ, SIG_IGN)
        let console = Console(json: json)
        let display = CopyDisplay(console)
        try await Outcome.run(console) {
            defer { display.end() }
            let copy = ConfiguredCopy(
                from: try ServerConfiguration.load(file: config), to: try ServerConfiguration.load(file: to))
            let report = try await copy.run { display.show($0) }
            display.end()
            console.report(report.json, report.text(console))
        }
    }
}

extension DatabaseMigration.Outcome {
    /// For a person.
    var text: String {
        switch self {
        case .missing: "There is no database yet: the first start makes it. Nothing was done."
        case .current(let step): "The database has schema step \(step), as this version needs it. Nothing was done."
        case .migrated(let from, let to): "The database was brought from schema step \(from) to \(to)."
        }
    }

    /// For a script.
    var json: JSONValue {
        switch self {
        case .missing: ["changed": false, "from": .null, "to": .null]
        case .current(let step): ["changed": false, "from": .integer(Int64(step)), "to": .integer(Int64(step))]
        case .migrated(let from, let to):
            ["changed": true, "from": .integer(Int64(from)), "to": .integer(Int64(to))]
        }
    }
}

extension DatabaseAdoption.Outcome {
    /// For a person.
    var text: String {
        switch self {
        case .notNeeded: "The data is in a SQLite file: there is nothing to adopt."
        case .nothingRemembered: "This node has not used a PostgreSQL database yet. Nothing was done."
        case .forgotten: "The next start takes the database as it is."
        }
    }

    /// For a script.
    var json: JSONValue { ["changed": .bool(self == .forgotten)] }
}

extension CopyReport {
    /// For a person.
    func text(_ console: Console) -> String {
        let rows = tables.reduce(0) { $0 + $1.rows }
        return "\(console.styled("✓", .green)) \(rows) rows in \(tables.count) tables are the same on both sides. "
            + "Start the servers on the target, and none on the source."
    }

    /// For a script.
    var json: JSONValue {
        [
            "resumed": .bool(isResumed),
            "tables": .array(
                tables.map {
                    ["table": .string($0.table), "rows": .integer($0.rows), "sha256": .string(Hex.encode($0.sha256))]
                }),
        ]
    }
}
