#if PostgreSQL && os(Linux)
extension PostgreSQLExamination {
    /// What is found about the role that signs in, and about what any other role may do to its schema: a function there
    /// that fits a statement better than PostgreSQL's own runs in its place, with this role's rights.
    func roleFindings(_ session: PostgreSQLSession) throws -> [DatabaseFinding] {
        let ask = PostgreSQLCommand(
            """
            SELECT rolsuper AS super, has_database_privilege('public', current_database(), 'CONNECT')
                AND coalesce(has_schema_privilege('public', current_schema(), 'CREATE'), false) AS shared,
                quote_ident(current_database()) AS database, quote_ident(current_user) AS role,
                coalesce(quote_ident(current_schema()), '') AS schema
            FROM pg_roles WHERE rolname = current_user
            """)
        guard case .rows(let rows)? = try session.exchange([ask]).first, let row = rows.first else { return [] }
        var findings: [DatabaseFinding] = []
        func note(_ condition: Bool, _ text: String) {
            if condition { findings.append(DatabaseFinding(isProblem: false, isNote: true, text)) }
        }
        note(
            try row.bool("super"),
            "The role \(configuration.user) is a superuser: anyone who has its password has the whole database server. "
                + "Make one that owns this database alone (CREATE ROLE … LOGIN).")
        let (database, role, schema) = (try row.text("database"), try row.text("role"), try row.text("schema"))
        // A role that does not own the database connects by what PUBLIC may: it is granted before that is taken away.
        note(
            try row.bool("shared"),
            "Every role of the database server may put functions into the schema that Assent uses, and so read and "
                + "change all data. Keep others out: GRANT CONNECT ON DATABASE \(database) TO \(role); "
                + "REVOKE CONNECT ON DATABASE \(database) FROM PUBLIC. Where another role must connect, grant it "
                + "CONNECT and REVOKE CREATE ON SCHEMA \(schema) FROM PUBLIC.")
        return findings
    }
}
#endif
