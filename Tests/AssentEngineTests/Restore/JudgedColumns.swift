@testable import AssentEngine

/// The columns of each table that is copied, as somebody has judged them. A new one is judged here before it is stored.
struct JudgedColumns: Sendable {
    /// What tells that something was used, tried or has ended: a restored backup has forgotten it, so ``TableRegister``
    /// has a step for the table, or a remark on why it may be forgotten.
    let used: Set<String>
    /// What is written with the row, or tells nothing of that kind.
    let others: Set<String>

    private init(used: String = "", _ others: String) {
        self.used = Set(used.split(separator: " ").map(String.init))
        self.others = Set(others.split(separator: " ").map(String.init))
    }

    static let all: [String: JudgedColumns] = [
        "attempts": JudgedColumns(
            used: "count",
            "counter window_start"),
        "audit": JudgedColumns(
            """
            id at event outcome reason realm user_id session_audit_id transaction_id detail sequence node \
            position
            """),
        "bootstrap_tokens": JudgedColumns(
            used: "used_at",
            "hash created_at used_by sealed_token"),
        "client_assertions": JudgedColumns(
            "id realm client_id expires_at"),
        "client_instances": JudgedColumns(
            used: "used_at expires_at key_thumbprint metadata app_version app_platform",
            "id realm app token_hash created_at"),
        "consents": JudgedColumns(
            "user_id client_id realm scope granted_at used_at expires_at"),
        "device_configs": JudgedColumns(
            used: "version digest",
            "realm app"),
        "grants": JudgedColumns(
            used: "revoked_at revoked_because",
            """
            id realm client_id user_id session_id session_audit_id scope auth_time auth_level sender \
            is_offline created_at expires_at acr amr epoch instance_id
            """),
        "journey_steps": JudgedColumns(
            used: "claim claimed_at answer answered_at sealed_reply",
            "id created_at expires_at sealed_state"),
        "leases": JudgedColumns(
            "name holder expires_at"),
        "nodes": JudgedColumns(
            "id seen_at policies"),
        "oauth_codes": JudgedColumns(
            used: "used_at",
            "id grant_id client_id redirect_uri code_challenge nonce sender expires_at"),
        "refresh_tokens": JudgedColumns(
            used: "used_at attempt_hash successor_id sealed_successor",
            "id grant_id client_id issued_at expires_at"),
        "registered_apps": JudgedColumns(
            used: "instances",
            "realm app"),
        "registration_tokens": JudgedColumns(
            used: "uses_left",
            "hash realm app created_at expires_at"),
        "revoked_access_tokens": JudgedColumns(
            "id grant_id expires_at"),
        "payload_keys": JudgedColumns(
            used: "withdrawn_at",
            "kid public_key sealed_key not_before not_after created_at"),
        "server_keys": JudgedColumns(
            used: "retired_at",
            "kid purpose algorithm sealed_key public_jwk created_at"),
        "server_state": JudgedColumns(
            "name value"),
        "sessions": JudgedColumns(
            """
            id audit_id user_id realm auth_level created_at latest_access max_idle expires_at properties epoch \
            sender acr amr kind is_of_journey journey_level did grant_id earlier
            """),
        "signing_certificates": JudgedColumns(
            "kid iss identity cert"),
        "signing_confirms": JudgedColumns(
            used: "taken_by",
            "did slot n unl generation evaluated_at confirmed_at eval confirm"),
        "signing_containers": JudgedColumns(
            used: "state blocked_from number echo_at digits_at ended_at",
            """
            did iss user_id username pid serial name push_id properties commit_mode device_kid device_jwk \
            transport_jwk sealed_echo echo_hash sealed_handle offer enrol transcript record approvals_from \
            renew_at expires_at void_at created_at seen_at instance_id
            """),
        "signing_decisions": JudgedColumns(
            "txn did dh decision possession txd eval confirm receipt decided_at"),
        "signing_documents": JudgedColumns(
            "txn did txd txh delivered_at"),
        "signing_enrolments": JudgedColumns(
            used: "state commitment nonce_s",
            "did iss pid device_kid device_jwk request_hash offer info created_at expires_at"),
        "signing_identities": JudgedColumns(
            "iss seq kid public_jwk sealed_key next previous created_at"),
        "signing_invites": JudgedColumns(
            used: "state starts committed digits tries",
            "pid iss user_id username made_by code_hash created_at expires_at did instance_id"),
        "signing_keys": JudgedColumns(
            used: "state used_at",
            "kid did position usage label policy slot keystore public_jwk since"),
        "signing_notices": JudgedColumns(
            "id did event about name at expires_at position"),
        "signing_offered_slots": JudgedColumns(
            used: "evaluations request blinded",
            "did pid slot generation public_key sealed_k expires_at"),
        "signing_online_keys": JudgedColumns(
            used: "retired_at",
            "kid iss generation key_use public_jwk sealed_key cert created_at expires_at"),
        "signing_otp_keys": JudgedColumns(
            used: "counter",
            "did label position policy sealed_uri created_at"),
        "signing_proofs": JudgedColumns(
            "jti did expires_at"),
        "signing_records": JudgedColumns(
            "did seq record enrol offer endorsements created_at"),
        "signing_renewals": JudgedColumns(
            used: "state commitment nonce_s echo_at digits_at",
            """
            pid iss did invite commit_mode offer enrol transcript endorsements name device_kid device_jwk \
            transport_jwk sealed_echo echo_hash renew_at keys_expire_at created_at expires_at
            """),
        "signing_slots": JudgedColumns(
            used: """
                pending_generation pending_public_key pending_k n floor unconfirmed cleared forgive_after \
                next_at counted cur next ahead held
                """,
            "did slot generation public_key sealed_k at request blinded changed_at restored_at"),
        "signing_transactions": JudgedColumns(
            used: "state claimed_by decided_by decided_at taken_by",
            """
            txn iss client_id user_id did kind reason status content req request match_number match_by \
            created_at expires_at own_session policy_transaction idempotency_key request_key
            """),
        "totp_credentials": JudgedColumns(
            used: "last_step",
            "user_id sealed_secret algorithm digits period"),
        "transactions": JudgedColumns(
            used:
                "state started_at shown completed_at taken_at forwarded_at outcome upstream_status outcome_at attempt question",
            """
            id kind realm policy_set policy policy_revision strategy specifier url resource query method \
            media_type body_sha256 user_id session_id session_audit_id grant_id sender display \
            created_at expires_at request_key bound maker
            """),
        "usual_networks": JudgedColumns(
            "user_id slot network auth_level epoch seen_at"),
        "users": JudgedColumns(
            used: "active epoch",
            "id realm username password_hash roles attributes created_at"),
        "web_links": JudgedColumns(
            used: "used_at",
            "id realm grant_id target created_at expires_at"),
    ]
}
