import Foundation
import GRDB

/// The bank's books: accounts and transfers in one SQLite file.
struct Ledger: Sendable {
    struct Account: Sendable {
        let owner: String
        let currency: String
        let balance: Money
    }

    struct Transfer: Sendable {
        let id: Int64
        let from: String
        let to: String
        let amount: Money
        let currency: String
    }

    enum Refusal: Error {
        case noSuchAccount
        case insufficientFunds
        case keyUsedForAnotherTransfer
    }

    private let database: DatabaseQueue

    init(path: String, owners: [String], openingBalance: Money) throws {
        database = try DatabaseQueue(path: path)
        try database.write { database in
            try database.execute(
                sql: """
                    CREATE TABLE IF NOT EXISTS accounts (
                        owner TEXT PRIMARY KEY, currency TEXT NOT NULL, cents INTEGER NOT NULL CHECK (cents >= 0));
                    CREATE TABLE IF NOT EXISTS transfers (
                        id INTEGER PRIMARY KEY AUTOINCREMENT, idempotency_key TEXT NOT NULL, sender TEXT NOT NULL,
                        payee TEXT NOT NULL, cents INTEGER NOT NULL, currency TEXT NOT NULL, booked_at TEXT NOT NULL,
                        UNIQUE (sender, idempotency_key));
                    """)
            for owner in owners {
                try database.execute(
                    sql: "INSERT INTO accounts VALUES (?, 'EUR', ?) ON CONFLICT DO NOTHING",
                    arguments: [owner, openingBalance.cents])
            }
        }
    }

    func account(of owner: String) async throws -> Account? {
        try await database.read { database in
            try Row.fetchOne(database, sql: "SELECT * FROM accounts WHERE owner = ?", arguments: [owner]).map {
                Account(owner: owner, currency: $0["currency"], balance: Money(cents: $0["cents"]))
            }
        }
    }

    func transfers(of owner: String) async throws -> [Transfer] {
        try await database.read { database in
            try Row.fetchAll(
                database, sql: "SELECT * FROM transfers WHERE sender = ? ORDER BY id", arguments: [owner]
            ).map(Self.transfer)
        }
    }

    /// Books a transfer once for each key: the same key with the same transfer gives the booking that is there.
    func transfer(
        from sender: String, to payee: String, amount: Money, currency: String, key: String
    ) async throws -> Transfer {
        try await database.write { database in
            if let row = try Row.fetchOne(
                database, sql: "SELECT * FROM transfers WHERE sender = ? AND idempotency_key = ?",
                arguments: [sender, key])
            {
                let booked = Self.transfer(row)
                guard booked.to == payee, booked.amount == amount, booked.currency == currency else {
                    throw Refusal.keyUsedForAnotherTransfer
                }
                return booked
            }
            guard
                let account = try Row.fetchOne(
                    database, sql: "SELECT * FROM accounts WHERE owner = ? AND currency = ?",
                    arguments: [sender, currency])
            else { throw Refusal.noSuchAccount }
            let cents: Int64 = account["cents"]
            guard cents >= amount.cents else { throw Refusal.insufficientFunds }
            try database.execute(
                sql: "UPDATE accounts SET cents = cents - ? WHERE owner = ?", arguments: [amount.cents, sender])
            try database.execute(
                sql: """
                    INSERT INTO transfers (idempotency_key, sender, payee, cents, currency, booked_at)
                    VALUES (?, ?, ?, ?, ?, ?)
                    """, arguments: [key, sender, payee, amount.cents, currency, Date.now.ISO8601Format()])
            return Transfer(
                id: database.lastInsertedRowID, from: sender, to: payee, amount: amount, currency: currency)
        }
    }

    private static func transfer(_ row: Row) -> Transfer {
        Transfer(
            id: row["id"], from: row["sender"], to: row["payee"], amount: Money(cents: row["cents"]),
            currency: row["currency"])
    }
}
