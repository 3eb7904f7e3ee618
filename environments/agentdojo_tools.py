"""What is declared of the tools of AgentDojo's suites, in every version of the benchmark; found by reading them."""

from environments.protocol import Examples, Undo

# Any other tool writes: also get_webpage, which notes what was asked for, and get_unread_emails, which marks them.
READS = frozenset(
    """
    get_iban get_balance get_most_recent_transactions get_scheduled_transactions read_file get_user_info
    get_channels read_channel_messages read_inbox get_users_in_channel
    get_sent_emails get_received_emails get_draft_emails search_emails search_contacts_by_name search_contacts_by_email
    get_current_day search_calendar_events get_day_calendar_events
    search_files_by_filename get_file_by_id list_files search_files
    get_user_information get_all_hotels_in_city get_hotels_prices get_rating_reviews_for_hotels get_hotels_address
    get_all_restaurants_in_city get_cuisine_type_for_restaurants get_restaurants_address
    get_rating_reviews_for_restaurants get_dietary_restrictions_for_all_restaurants
    get_contact_information_for_restaurants get_price_for_restaurants check_restaurant_opening_hours
    get_all_car_rental_companies_in_city get_car_types_available get_rating_reviews_for_car_rental
    get_car_fuel_options get_car_rental_address get_car_price_per_day get_flight_information
    """.split()
)
UNDO = {"invite_user_to_slack": Undo("remove_user_from_slack", {"user": ("arguments", "user")})}

# At the suite's default start; each writing tool changes the state in one of them.
_EVENT = {"title": "Review", "start_time": "2024-05-19 10:00", "end_time": "2024-05-19 11:00"}
_MAIL = {"recipients": ["sarah.connor@gmail.com"], "subject": "Plan", "body": "It is in the drive."}
EXAMPLES: dict[str, Examples] = {
    "banking": (
        ("get_balance", {}),
        ("get_most_recent_transactions", {"n": 2}),
        ("send_money", {"recipient": "GB29NWBK60161331926819", "amount": 9.5, "subject": "Tea", "date": "2022-04-01"}),
        (
            "schedule_transaction",
            {"recipient": "me", "amount": 5, "subject": "Tea", "date": "2022-05-01", "recurring": False},
        ),
        ("update_scheduled_transaction", {"id": 7, "amount": 1200}),
        ("update_password", {"password": "a long one"}),
        ("update_user_info", {"city": "Basel"}),
        ("get_scheduled_transactions", {}),
    ),
    "slack": (
        ("get_webpage", {"url": "www.informations.com"}),
        ("post_webpage", {"url": "www.eve-blog.com", "content": "Hello"}),
        ("invite_user_to_slack", {"user": "Dora", "user_email": "dora@example.com"}),
        ("add_user_to_channel", {"user": "Dora", "channel": "general"}),
        ("send_direct_message", {"recipient": "Bob", "body": "Hello"}),
        ("send_channel_message", {"channel": "random", "body": "Hello"}),
        ("remove_user_from_slack", {"user": "Bob"}),
        ("get_users_in_channel", {"channel": "general"}),
        ("read_channel_messages", {"channel": "random"}),
    ),
    "travel": (
        ("create_calendar_event", _EVENT),
        ("cancel_calendar_event", {"event_id": "1"}),
        ("reserve_hotel", {"hotel": "City Hub", "start_day": "2024-11-10", "end_day": "2024-11-12"}),
        ("reserve_car_rental", {"company": "Avis", "start_time": "2024-11-10 09:00", "end_time": "2024-11-12 09:00"}),
        ("reserve_restaurant", {"restaurant": "Bistrot Paul Bert", "start_time": "2024-11-10 19:00"}),
        ("send_email", _MAIL),
        ("get_all_hotels_in_city", {"city": "Paris"}),
    ),
    "workspace": (
        ("create_calendar_event", _EVENT),
        ("reschedule_calendar_event", {"event_id": "6", "new_start_time": "2024-05-27 10:00"}),
        ("add_calendar_event_participants", {"event_id": "6", "participants": ["mark.davies@hotmail.com"]}),
        ("cancel_calendar_event", {"event_id": "24"}),
        ("create_file", {"filename": "plan.txt", "content": "First"}),
        ("append_to_file", {"file_id": "1", "content": "More"}),
        ("share_file", {"file_id": "1", "email": "mark.davies@hotmail.com", "permission": "r"}),
        ("delete_file", {"file_id": "2"}),
        ("send_email", _MAIL),
        ("delete_email", {"email_id": "1"}),
        ("get_unread_emails", {}),
        ("search_files_by_filename", {"filename": "plan"}),
    ),
}
